"""The encoder: every token sees the whole sentence, block after block (lesson 08)."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.add_norm import Norm, PostNorm, PreNorm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention
from course_lib.positions import sinusoidal

# what makes the parts of a block, of (d_model, heads) and of (d_model, d_ff)
FeedForwardFactory = Callable[[int, int], nn.Module]


def residual(norm: Literal["post", "pre"]) -> type[PostNorm] | type[PreNorm]:
    """Return the way in which a block adds and normalises, "post" or "pre".

    Raises ValueError for any other `norm`.
    """
    ways = {"post": PostNorm, "pre": PreNorm}
    if norm not in ways:
        raise ValueError(f'norm must be "post", as in the paper of 2017, or "pre", not {norm!r}')
    return ways[norm]


class EncoderBlock(nn.Module):
    """Self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. The two layers, each inside its
    add and norm, are `self.attention` and `self.feed_forward`: weights are copied from block to
    block by these names. Source: Vaswani et al. 2017, section 3.1; norm="pre" is Xiong et al.
    2020, figure 1 (b).
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
    ):
        # call the constructor of nn.Module, then make both layers, each inside its add and norm
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return the block's output for each token; `mask` is as in `MultiHeadAttention`."""
        # pass the tokens through both sublayers
        seen = self.attention(x, mask)
        return self.feed_forward(seen)


class Embedding(nn.Module):
    """Turn tokens into vectors that know their positions: sqrt(d_model) E[token] + sinusoid.

    `positions(n, d_model)` describes the places. Source: Vaswani et al. 2017, sections 3.4 and 3.5.
    """

    positions: Tensor

    def __init__(
        self,
        vocab: int,
        d_model: int,
        max_length: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
    ):
        super().__init__()
        # times sqrt(d_model), each entry has the variance 1
        self.table = nn.Parameter(torch.randn(vocab, d_model) / d_model**0.5)
        self.register_buffer("positions", positions(max_length, d_model), persistent=False)

    def forward(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n d_model"]:
        """Look up the tokens. Raises ValueError for more tokens than `max_length`."""
        n, (max_length, d_model) = tokens.shape[-1], self.positions.shape
        if n > max_length:
            raise ValueError(
                f"expected at most max_length = {max_length} tokens, but got {n}: cut the text, "
                "or build the model with a larger max_length"
            )
        return d_model**0.5 * self.table[tokens] + self.positions[:n].to(self.table)


class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
    """

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
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        # look up the embeddings, positions included
        x = self.embedding(tokens)
        # pass them through block after block
        for block in self.blocks:
            x = block(x, mask)
        # apply the last norm
        return self.last_norm(x)
