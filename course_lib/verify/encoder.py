"""Lesson 08: the encoder and its block, held against torch's layers, with padding."""

from typing import Literal

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import encoder, masks
from course_lib.positions import sinusoidal
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import (
    draw_padded_tokens,
    draw_sizes,
    draw_weights,
    torch_block,
    torch_encoder,
)


@compare(encoder.EncoderBlock, "`nn.TransformerEncoderLayer(norm_first=False)`, padded")
def _post_norm_encoder_block(inputs: Inputs):
    return _encoder_blocks(inputs, "post")


@compare(encoder.EncoderBlock, "`nn.TransformerEncoderLayer(norm_first=True)`, padded")
def _pre_norm_encoder_block(inputs: Inputs):
    return _encoder_blocks(inputs, "pre")


def _encoder_blocks(inputs: Inputs, norm: Literal["post", "pre"]):
    heads, d_k, d_ff, batch, n = inputs.sizes(5)
    ours = encoder.EncoderBlock(heads * d_k, heads, d_ff, norm)
    weights, x = draw_weights(inputs, ours), inputs.normal(batch, n, heads * d_k)
    mask = masks.padding_mask(torch.tensor(inputs.sizes(batch, 1, n)), n)
    theirs = torch_block(weights, heads, norm, x, mask)
    return functional_call(ours, weights, (x, mask)), theirs


@compare(encoder.Encoder, "a stack of torch's encoder layers, norm_first=True, and a last norm")
def _encoder(inputs: Inputs):
    sizes = draw_sizes(inputs)
    ours = encoder.Encoder(*sizes.values(), norm="pre")
    weights = draw_weights(inputs, ours)
    tokens, mask = draw_padded_tokens(inputs, sizes)
    theirs = torch_encoder(weights, sizes, "pre", tokens, mask)
    return functional_call(ours, weights, (tokens, mask)), theirs


@compare(encoder.Embedding, "`F.embedding`, times the root, plus sinusoids")
def _embedding(inputs: Inputs):
    vocab, n, half = inputs.sizes(3)
    ours = encoder.Embedding(vocab, 2 * half, n)
    weights = draw_weights(inputs, ours)
    tokens = torch.tensor(inputs.sizes(n, 0, vocab - 1))
    theirs = F.embedding(tokens, weights["table"]) * (2 * half) ** 0.5 + sinusoidal(n, 2 * half)
    return functional_call(ours, weights, tokens), theirs
