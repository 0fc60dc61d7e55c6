"""Lesson 08: the whole Transformer, held against torch's layers in stacks, with padding."""

from typing import Literal

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
