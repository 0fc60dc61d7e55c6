"""The comparisons of `course_lib.transformer`."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import masks, transformer
from course_lib.positions import sinusoidal
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import (
    draw_padded_tokens,
    draw_sizes,
    draw_weights,
    part,
    torch_block,
    torch_decoder,
    torch_encoder,
)


@compare(transformer.EncoderBlock, "`nn.TransformerEncoderLayer(norm_first=False)`, padded")
def _post_norm_encoder_block(inputs: Inputs):
    return _encoder_blocks(inputs, "post")


@compare(transformer.EncoderBlock, "`nn.TransformerEncoderLayer(norm_first=True)`, padded")
def _pre_norm_encoder_block(inputs: Inputs):
    return _encoder_blocks(inputs, "pre")


def _encoder_blocks(inputs: Inputs, norm: Literal["post", "pre"]):
    heads, d_k, d_ff, batch, n = inputs.sizes(5)
    ours = transformer.EncoderBlock(heads * d_k, heads, d_ff, norm)
    weights, x = draw_weights(inputs, ours), inputs.normal(batch, n, heads * d_k)
    mask = masks.padding_mask(torch.tensor(inputs.sizes(batch, 1, n)), n)
    theirs = torch_block(weights, heads, norm, x, mask)
    return functional_call(ours, weights, (x, mask)), theirs


@compare(transformer.Encoder, "a stack of torch's encoder layers, norm_first=True, and a last norm")
def _encoder(inputs: Inputs):
    sizes = draw_sizes(inputs)
    ours = transformer.Encoder(*sizes.values(), norm="pre")
    weights = draw_weights(inputs, ours)
    tokens, mask = draw_padded_tokens(inputs, sizes)
    theirs = torch_encoder(weights, sizes, "pre", tokens, mask)
    return functional_call(ours, weights, (tokens, mask)), theirs


@compare(transformer.Embedding, "`F.embedding`, times the root, plus sinusoids")
def _embedding(inputs: Inputs):
    vocab, n, half = inputs.sizes(3)
    ours = transformer.Embedding(vocab, 2 * half, n)
    weights = draw_weights(inputs, ours)
    tokens = torch.tensor(inputs.sizes(n, 0, vocab - 1))
    theirs = F.embedding(tokens, weights["table"]) * (2 * half) ** 0.5 + sinusoidal(n, 2 * half)
    return functional_call(ours, weights, tokens), theirs


@compare(transformer.cross_attention, "`F.linear`, `F.scaled_dot_product_attention`")
def _cross_attention(inputs: Inputs):
    batch, (n_q, n_k, d_z, d_h, d_k, d_v) = inputs.batch(), inputs.sizes(6)
    z, h = inputs.normal(*batch, n_q, d_z), inputs.normal(*batch, n_k, d_h)
    w_q, w_k, w_v = (inputs.normal(*s) for s in ((d_z, d_k), (d_h, d_k), (d_h, d_v)))
    mask = inputs.mask(n_q, n_k)
    roles = (F.linear(x, w.mT) for x, w in ((z, w_q), (h, w_k), (h, w_v)))
    theirs = F.scaled_dot_product_attention(*roles, attn_mask=mask)
    return transformer.cross_attention(z, h, w_q, w_k, w_v, mask), theirs


@compare(transformer.DecoderBlock, "`nn.TransformerDecoderLayer(norm_first=False)`, padded")
def _post_norm_decoder_block(inputs: Inputs):
    return _decoder_blocks(inputs, "post")


@compare(transformer.DecoderBlock, "`nn.TransformerDecoderLayer(norm_first=True)`, padded")
def _pre_norm_decoder_block(inputs: Inputs):
    return _decoder_blocks(inputs, "pre")


def _decoder_blocks(inputs: Inputs, norm: Literal["post", "pre"]):
    heads, d_k, d_ff, batch, n_q, n_k = inputs.sizes(6)
    ours = transformer.DecoderBlock(heads * d_k, heads, d_ff, norm)
    weights, x = draw_weights(inputs, ours), inputs.normal(batch, n_q, heads * d_k)
    memory = inputs.normal(batch, n_k, heads * d_k)
    memory_mask = masks.padding_mask(torch.tensor(inputs.sizes(batch, 1, n_k)), n_k)
    theirs = torch_block(weights, heads, norm, x, memory_mask, memory)
    mask = masks.causal_mask(n_q)
    return functional_call(ours, weights, (x, memory, mask, memory_mask)), theirs


@compare(transformer.Decoder, "a stack of torch's decoder layers, norm_first=True, and a last norm")
def _decoder(inputs: Inputs):
    sizes = draw_sizes(inputs)
    ours = transformer.Decoder(*sizes.values(), norm="pre")
    weights = draw_weights(inputs, ours)
    memory_tokens, mask = draw_padded_tokens(inputs, sizes)
    memory = inputs.normal(*memory_tokens.shape, sizes["d_model"])
    tokens, _ = draw_padded_tokens(inputs, sizes, batch=len(memory))
    theirs = torch_decoder(weights, sizes, "pre", tokens, memory, mask)
    return functional_call(ours, weights, (tokens, memory, mask)), theirs


@compare(transformer.Transformer, "stacks of torch's layers, norm_first=False, tied")
def _post_norm_transformer(inputs: Inputs):
    return _transformers(inputs, "post", tied=True)


@compare(transformer.Transformer, "stacks of torch's layers, norm_first=True, not tied")
def _pre_norm_transformer(inputs: Inputs):
    return _transformers(inputs, "pre", tied=False)


class _Loss(nn.Module):
    """`next_token_loss` as a module, so that `functional_call` can hand over weights."""

    def __init__(self, model: transformer.Transformer):
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Score all positions in one pass."""
        return transformer.next_token_loss(self.model, source, target, start=0)


@compare(transformer.next_token_loss, "the last rows of as many passes as there are tokens")
def _next_token_loss(inputs: Inputs):
    sizes = draw_sizes(inputs)
    model = transformer.Transformer(*sizes.values(), norm="post", tied=False)
    weights = draw_weights(inputs, model)
    source, _ = draw_padded_tokens(inputs, sizes)
    target, _ = draw_padded_tokens(inputs, sizes, batch=len(source))
    so_far, losses = torch.zeros_like(target[:, :1]), []
    for token in target.unbind(-1):
        last = functional_call(model, weights, (source, so_far))[:, -1]
        losses.append(F.cross_entropy(last, token))
        so_far = torch.cat([so_far, token.unsqueeze(-1)], dim=-1)
    ours = functional_call(
        _Loss(model), {f"model.{k}": w for k, w in weights.items()}, (source, target)
    )
    return ours, torch.stack(losses).mean()


def _transformers(inputs: Inputs, norm: Literal["post", "pre"], tied: bool):
    sizes = draw_sizes(inputs)
    ours = transformer.Transformer(*sizes.values(), norm=norm, tied=tied)
    weights = draw_weights(inputs, ours)
    source, mask = draw_padded_tokens(inputs, sizes)
    target, _ = draw_padded_tokens(inputs, sizes, batch=len(source))
    table = "encoder.embedding.table"
    output = weights[table] if tied else weights["output.weight"]
    target_table = weights[table] if tied else weights["decoder.embedding.table"]
    read = part(weights, "encoder.")
    written = part(weights, "decoder.") | {"embedding.table": target_table}
    memory = torch_encoder(read, sizes, norm, source, mask)
    states = torch_decoder(written, sizes, norm, target, memory, mask)
    return functional_call(ours, weights, (source, target, mask)), F.linear(states, output)
