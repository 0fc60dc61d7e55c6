# %% encoder/block | wrong | thinks first and attends then
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        return self.attention(self.feed_forward(x), mask)

# %% encoder/block | wrong | the mask is forgotten
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        return self.feed_forward(self.attention(x))

# %% encoder/block | wrong | adds once more what the layers have added already
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        x = x + self.attention(x, mask)
        return x + self.feed_forward(x)

# %% encoder/block | wrong | the network reads the block's input, and the two results are added
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        return self.attention(x, mask) + self.feed_forward(x)

# %% encoder/block | wrong | always post-norm: the word is not looked at, and a wrong one not refused
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual("post")
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        return self.feed_forward(self.attention(x, mask))

# %% encoder/block | wrong | the mask is turned round: False where a word may look
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        if mask is not None:
            mask = ~mask
        return self.feed_forward(self.attention(x, mask))

# %% encoder/block | wrong | attends twice, as the decoder does
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        x = self.attention(x, mask)
        x = self.attention(x, mask)
        return self.feed_forward(x)

# %% encoder/block | right | both layers in a loop, the mask for the first alone
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        for layer, others in ((self.attention, (mask,)), (self.feed_forward, ())):
            x = layer(x, *others)
        return x

# %% encoder/stack | wrong | the mask goes to the first block only
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.encoder import Embedding, EncoderBlock


class Encoder(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            x = block(x, mask) if i == 0 else block(x)
        return self.last_norm(x)

# %% encoder/stack | wrong | the last norm is forgotten
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.encoder import Embedding, EncoderBlock


class Encoder(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return x

# %% encoder/stack | wrong | normalises after every block
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.encoder import Embedding, EncoderBlock


class Encoder(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = self.last_norm(block(x, mask))
        return x

# %% encoder/stack | wrong | every block reads the embedding, and the last one wins
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.encoder import Embedding, EncoderBlock


class Encoder(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        words = x = self.embedding(tokens)
        for block in self.blocks:
            x = block(words, mask)
        return self.last_norm(x)

# %% encoder/stack | wrong | the first block is used again and again
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.encoder import Embedding, EncoderBlock


class Encoder(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        x = self.embedding(tokens)
        for _ in self.blocks:
            x = self.blocks[0](x, mask)
        return self.last_norm(x)

# %% encoder/stack | wrong | a causal mask where none is given, as in a decoder
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.encoder import Embedding, EncoderBlock
from course_lib.masks import causal_mask


class Encoder(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        if mask is None:
            mask = causal_mask(tokens.shape[-1]).to(tokens.device)
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.last_norm(x)

# %% encoder/stack | wrong | the blocks are run from last to first
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.encoder import Embedding, EncoderBlock


class Encoder(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        x = self.embedding(tokens)
        for block in reversed(self.blocks):
            x = block(x, mask)
        return self.last_norm(x)

# %% encoder/stack | right | functools.reduce over the blocks
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.encoder import Embedding, EncoderBlock
from functools import reduce as fold


class Encoder(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        top = fold(lambda words, block: block(words, mask), self.blocks, self.embedding(tokens))
        return self.last_norm(top)

# %% encoder/mean_pool | wrong | the real words are taken to be the first ones: the mask is only counted
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    count = mask.sum(dim=-1, keepdim=True)
    first = torch.arange(states.shape[-2], device=states.device) < count
    total = (states * first.unsqueeze(-1)).sum(dim=-2)
    return total / count.clamp(min=1)

# %% encoder/mean_pool | wrong | the sum of the real words is divided by all places
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    return (states * mask.unsqueeze(-1)).mean(dim=-2)

# %% encoder/mean_pool | wrong | a sentence without words is NaN
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    return (states * mask.unsqueeze(-1)).sum(-2) / mask.sum(-1, keepdim=True)

# %% encoder/mean_pool | wrong | True = masked
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    real = ~mask
    count = real.sum(-1, keepdim=True).clamp(min=1)
    return (states * real.unsqueeze(-1)).sum(-2) / count

# %% encoder/mean_pool | wrong | boolean indexing runs all sentences of a batch together
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    real = states[mask]
    return real.sum(0) / max(len(real), 1)

# %% encoder/mean_pool | wrong | one is added to each count, not only to that of an empty sentence
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    count = mask.sum(-1, keepdim=True) + 1
    return (states * mask.unsqueeze(-1)).sum(-2) / count

# %% encoder/mean_pool | wrong | each mean is brought to length one, as the sentence encoder does later
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    count = mask.sum(-1, keepdim=True).clamp(min=1)
    mean = (states * mask.unsqueeze(-1)).sum(-2) / count
    return nn.functional.normalize(mean, dim=-1)

# %% encoder/mean_pool | right | a row of equal weights times the states
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    weights = mask.to(states.dtype)
    total = weights.sum(-1, keepdim=True)
    weights = weights / torch.where(total > 0, total, torch.ones_like(total))
    clean = torch.where(mask.unsqueeze(-1), states, torch.zeros_like(states))
    return (weights.unsqueeze(-2) @ clean).squeeze(-2)
