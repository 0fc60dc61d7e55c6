"""Lesson 08: the decoder, its block and its kinds of attention, held against torch's."""

from typing import Literal

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import decoder, masks
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import (
    draw_padded_tokens,
    draw_sizes,
    draw_weights,
    torch_block,
    torch_decoder,
)


@compare(decoder.cross_attention, "`F.linear`, `F.scaled_dot_product_attention`")
def _cross_attention(inputs: Inputs):
    batch, (n_q, n_k, d_z, d_h, d_k, d_v) = inputs.batch(), inputs.sizes(6)
    z, h = inputs.normal(*batch, n_q, d_z), inputs.normal(*batch, n_k, d_h)
    w_q, w_k, w_v = (inputs.normal(*s) for s in ((d_z, d_k), (d_h, d_k), (d_h, d_v)))
    mask = inputs.mask(n_q, n_k)
    roles = (F.linear(x, w.mT) for x, w in ((z, w_q), (h, w_k), (h, w_v)))
    theirs = F.scaled_dot_product_attention(*roles, attn_mask=mask)
    return decoder.cross_attention(z, h, w_q, w_k, w_v, mask), theirs


@compare(decoder.DecoderBlock, "`nn.TransformerDecoderLayer(norm_first=False)`, padded")
def _post_norm_decoder_block(inputs: Inputs):
    return _decoder_blocks(inputs, "post")


@compare(decoder.DecoderBlock, "`nn.TransformerDecoderLayer(norm_first=True)`, padded")
def _pre_norm_decoder_block(inputs: Inputs):
    return _decoder_blocks(inputs, "pre")


def _decoder_blocks(inputs: Inputs, norm: Literal["post", "pre"]):
    heads, d_k, d_ff, batch, n_q, n_k = inputs.sizes(6)
    ours = decoder.DecoderBlock(heads * d_k, heads, d_ff, norm)
    weights, x = draw_weights(inputs, ours), inputs.normal(batch, n_q, heads * d_k)
    memory = inputs.normal(batch, n_k, heads * d_k)
    memory_mask = masks.padding_mask(torch.tensor(inputs.sizes(batch, 1, n_k)), n_k)
    theirs = torch_block(weights, heads, norm, x, memory_mask, memory)
    mask = masks.causal_mask(n_q)
    return functional_call(ours, weights, (x, memory, mask, memory_mask)), theirs


@compare(decoder.Decoder, "a stack of torch's decoder layers, norm_first=True, and a last norm")
def _decoder(inputs: Inputs):
    sizes = draw_sizes(inputs)
    ours = decoder.Decoder(*sizes.values(), norm="pre")
    weights = draw_weights(inputs, ours)
    memory_tokens, mask = draw_padded_tokens(inputs, sizes)
    memory = inputs.normal(*memory_tokens.shape, sizes["d_model"])
    tokens, _ = draw_padded_tokens(inputs, sizes, batch=len(memory))
    theirs = torch_decoder(weights, sizes, "pre", tokens, memory, mask)
    return functional_call(ours, weights, (tokens, memory, mask)), theirs
