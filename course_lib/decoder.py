"""The decoder: masked self-attention, cross-attention and feed-forward, in blocks (lesson 08)."""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.add_norm import Norm, layer_norm
from course_lib.encoder import Embedding, residual
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention
from course_lib.self_attention import scaled_dot_product_attention


def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend from the decoder's states to the encoder's.

    The result is softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.
    Z are the decoder's states, H the encoder's; the scores are target tokens by source tokens.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    # make the queries from z, the keys and values from h
    q, k, v = z @ w_q, h @ w_k, h @ w_v
    # attend
    return scaled_dot_product_attention(q, k, v, mask)


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention, a feed-forward network, each with add and norm.

    `attention(d_model, heads)` makes both attentions, `feed_forward(d_model, d_ff)` the network,
    and `norm_layer(x, gain, bias)` normalises. The three layers, each inside its add and norm, are
    `self.attention`, `self.cross_attention` and `self.feed_forward`: weights are copied by these
    names. Source: Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`.
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
        # call the constructor of nn.Module, then make three layers, each in its add and norm
        super().__init__()
        add = residual(norm)
        itself = AsSelfAttention(attention(d_model, heads))
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(itself, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the tokens through three sublayers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the tokens among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        # pass the tokens through the three sublayers, in the order of the figure
        x = self.attention(x, mask)
        x = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(x)


class Decoder(nn.Module):
    """Score the tokens of a target: embedding, a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    right, up to the linear layer. Raises ValueError for an unknown `norm`.
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
        block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self,
        tokens: Int[Tensor, "*batch query"],
        memory: Float[Tensor, "*batch key d_model"],
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Return a state for each token, which has seen the memory and the tokens before it.

        Raises ValueError for more tokens than `max_length`.
        """
        # look up the embeddings, positions included
        x = self.embedding(tokens)
        # pass them through block after block, none of them seeing its future
        mask = causal_mask(tokens.shape[-1], device=tokens.device)
        for block in self.blocks:
            x = block(x, memory, mask, memory_mask)
        # apply the last norm
        return self.last_norm(x)
