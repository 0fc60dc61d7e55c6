"""The Transformer of 2017: encoder, decoder, and both of them together (lesson 08)."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import Norm, PostNorm, PreNorm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention
from course_lib.positions import sinusoidal
from course_lib.self_attention import scaled_dot_product_attention

# what makes the parts of a block, of (d_model, heads) and of (d_model, d_ff)
FeedForwardFactory = Callable[[int, int], nn.Module]


def add_and_norm(norm: Literal["post", "pre"]) -> type[PostNorm] | type[PreNorm]:
    """Return the way in which a block adds and normalises, "post" or "pre".

    Raises ValueError for any other `norm`.
    """
    ways = {"post": PostNorm, "pre": PreNorm}
    if norm not in ways:
        raise ValueError(f'norm must be "post", as in the paper of 2017, or "pre", not {norm!r}')
    return ways[norm]


residual = add_and_norm  # its name in 0.2.0


class EncoderBlock(nn.Module):
    """Self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. The two layers, each inside its
    add and norm, are `self.attention`, made with `AsSelfAttention`, and `self.feed_forward`:
    weights are copied from block to block by these names. Source: Vaswani et al. 2017, section
    3.1; norm="pre" is Xiong et al. 2020, figure 1 (b).
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
        add = add_and_norm(norm)
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
    `self.attention`, made with `AsSelfAttention`, `self.cross_attention`, made with
    `AsCrossAttention`, and `self.feed_forward`: weights are copied by these names. Source: Vaswani
    et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`.
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
        add = add_and_norm(norm)
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
        # pass them through block after block, under a causal mask
        mask = causal_mask(tokens.shape[-1], device=tokens.device)
        for block in self.blocks:
            x = block(x, memory, mask, memory_mask)
        # apply the last norm
        return self.last_norm(x)


# Vaswani et al. 2017, table 3: the base model, on 37,000 shared pieces of English and German
BASE = {"vocab": 37000, "layers": 6, "d_model": 512, "heads": 8, "d_ff": 2048}


class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
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
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        # from the source to the memory, from there to states, and to logits
        memory = self.encoder(source, source_mask)
        states = self.decoder(target, memory, source_mask)
        return self.output(states)


def next_token_loss(
    model: "Transformer",
    source: Int[Tensor, "*batch key"],
    target: Int[Tensor, "*batch query"],
    start: int,
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of each target token, in nats, given those before it.

    The decoder reads the target shifted right ("offset by one position", Vaswani et al. 2017,
    section 3.1), so that all positions are scored in one pass: teacher forcing.
    """
    # let the decoder read the target one position late, behind the start
    first = torch.full_like(target[..., :1], start)
    read = torch.cat([first, target[..., :-1]], dim=-1)
    # score all positions in one pass
    logits = model(source, read)
    # compare each position's logits with the target there
    return F.cross_entropy(logits.flatten(0, -2), target.flatten())


@torch.no_grad()
def greedy(
    model: "Transformer",
    source: Int[Tensor, "batch key"],
    start: int,
    stop: int,
    most: int,
    source_mask: Bool[Tensor, "#batch 1 #key"] | None = None,
) -> Int[Tensor, "batch query"]:
    """Write a target for each source, always by the likeliest next token.

    Returns the tokens without the start. It ends when each row has a `stop`, or `most` tokens; what
    a row holds after its stop means nothing. Source: Vaswani et al. 2017, section 3.1
    ("auto-regressive").
    """
    # read the source once
    memory = model.encoder(source, source_mask)
    # begin each row with the start
    target = torch.full_like(source[:, :1], start)
    for _ in range(most):
        # end when every row has its stop
        if (target[:, 1:] == stop).any(-1).all():
            break
        # read what is written so far, and append the likeliest next token
        states = model.decoder(target, memory, source_mask)
        target = torch.cat([target, model.output(states[:, -1:]).argmax(-1)], dim=-1)
    # leave out the start
    return target[:, 1:]


def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the parameters of a `Transformer` of tied embeddings and post-norm.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked. (`multi_head.parameter_count` is another
    function: it counts one layer of attention.)
    """
    # count the parts
    attention = 4 * (d_model * d_model + d_model)
    network = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    # count the blocks: two layers in the encoder's, three in the decoder's, a norm for each
    encoder = attention + network + 2 * norm
    decoder = 2 * attention + network + 3 * norm
    # add the one embedding, which is the output layer as well
    return vocab * d_model + layers * (encoder + decoder)
