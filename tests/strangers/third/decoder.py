# %% decoder/block | wrong | cross-attention reads the block's own input, not what self-attention returned
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        seen = self.attention(x, mask)
        looked = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(seen + looked)

# %% decoder/block | wrong | the memory's mask goes into self-attention where there is no other
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        x = self.attention(x, mask if mask is not None else memory_mask)
        x = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(x)

# %% decoder/block | wrong | a second feed-forward network after each attention
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        x = self.feed_forward(self.attention(x, mask))
        return self.feed_forward(self.cross_attention(x, memory, memory_mask))
