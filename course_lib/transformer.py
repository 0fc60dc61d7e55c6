"""The whole Transformer of 2017 (lesson 08)."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock

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
