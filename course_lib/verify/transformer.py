"""Lesson 08: the whole Transformer, held against torch's layers in stacks, with padding."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import transformer
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import (
    draw_padded_tokens,
    draw_sizes,
    draw_weights,
    part,
    torch_decoder,
    torch_encoder,
)


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
