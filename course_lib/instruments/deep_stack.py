"""Blocks stacked as high as one likes, their layers joined as one likes (lesson 07)."""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.add_norm import Norm
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention
from course_lib.positions import sinusoidal


class Stack(nn.Module):
    """Read characters, and score the next one after each of them.

    Embeddings plus positions, then `blocks` times causal self-attention and the feed-forward
    network, then one linear layer. `wrap(sublayer, d_model)` says how each layer meets the words:
    `bare`, `Residual` or `NormAlone` from here, `PostNorm` or `PreNorm` from `add_norm`.
    """

    def __init__(self, vocab: int, blocks: int, d_model: int, heads: int, wrap: Callable):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.attention = nn.ModuleList(
            wrap(AsSelfAttention(MultiHeadAttention(d_model, heads)), d_model)
            for _ in range(blocks)
        )
        self.feed_forward = nn.ModuleList(
            wrap(FeedForward(d_model, 4 * d_model), d_model) for _ in range(blocks)
        )
        self.scores = nn.Linear(d_model, vocab)

    def streams(self, tokens: Int[Tensor, "... n"]) -> list[Float[Tensor, "... n d_model"]]:
        """Return the words as they enter the first block, and as they leave each block."""
        x = self.embedding(tokens)
        x = x + sinusoidal(*x.shape[-2:]).to(x)
        mask = causal_mask(tokens.shape[-1]).to(x.device)
        streams = [x]
        for attention, feed_forward in zip(self.attention, self.feed_forward, strict=True):
            streams.append(feed_forward(attention(streams[-1], mask)))
        return streams

    def forward(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n vocab"]:
        """Return the scores of the character after each."""
        return self.scores(self.streams(tokens)[-1])


def bare(sublayer: nn.Module, d_model: int) -> nn.Module:
    """Put a layer in the way, as every network did before 2015: x becomes sublayer(x)."""
    return sublayer


class Residual(nn.Module):
    """Put a layer beside the way: x + sublayer(x). Source: He et al. 2016, eq. 1."""

    def __init__(self, sublayer: Callable, d_model: int):
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets `args` after x."""
        return x + self.sublayer(x, *args)


class NormAlone(nn.Module):
    """Normalise what a layer reads, and add nothing to what it writes: sublayer(norm(x))."""

    def __init__(self, sublayer: Callable, d_model: int):
        super().__init__()
        self.sublayer, self.norm = sublayer, Norm(d_model)

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return what the sublayer makes of the normalised x, and `args` after it."""
        return self.sublayer(self.norm(x), *args)
