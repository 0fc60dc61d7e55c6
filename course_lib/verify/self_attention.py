"""Lesson 03: self-attention, held against torch's fused attention."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import self_attention
from course_lib.verify.comparison import Inputs, compare


@compare(self_attention.parameter_free, "`F.scaled_dot_product_attention(scale=1)`")
def _parameter_free(inputs: Inputs):
    x = inputs.normal(*inputs.batch(), *inputs.sizes(2))
    return self_attention.parameter_free(x), F.scaled_dot_product_attention(x, x, x, scale=1.0)


@compare(self_attention.parameter_free, "the same, with `is_causal=True`")
def _parameter_free_causal(inputs: Inputs):
    x = inputs.normal(*inputs.batch(), *inputs.sizes(2))
    theirs = F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=1.0)
    return self_attention.parameter_free(x, causal=True), theirs


@compare(self_attention.project, "one `F.linear`, then split")
def _project(inputs: Inputs):
    n, d_model, d_k, d_v = inputs.sizes(4)
    x = inputs.normal(*inputs.batch(), n, d_model)
    matrices = [inputs.normal(d_model, size) for size in (d_k, d_k, d_v)]
    theirs = F.linear(x, torch.cat(matrices, dim=-1).mT).split([d_k, d_k, d_v], dim=-1)
    return self_attention.project(x, *matrices), theirs


@compare(self_attention.scaled_dot_product_attention, "`F.scaled_dot_product_attention`")
def _scaled_dot_product_attention(inputs: Inputs):
    q, k, v = inputs.query_key_value()
    theirs = F.scaled_dot_product_attention(q, k, v)
    return self_attention.scaled_dot_product_attention(q, k, v), theirs


@compare(self_attention.scaled_dot_product_attention, "the same, with masks and a row all masked")
def _masked_attention(inputs: Inputs):
    q, k, v = inputs.query_key_value()
    mask = inputs.mask(*q.shape[:-1], k.shape[-2])
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return self_attention.scaled_dot_product_attention(q, k, v, mask), theirs


@compare(self_attention.SelfAttention, "`F.scaled_dot_product_attention` of three `F.linear`")
def _self_attention(inputs: Inputs):
    n, d_model, d_k, d_v = inputs.sizes(4)
    x, mask = inputs.normal(*inputs.batch(), n, d_model), inputs.mask(n, n)
    shapes = {"w_q": d_k, "w_k": d_k, "w_v": d_v}
    weights = {name: inputs.normal(d_model, size) for name, size in shapes.items()}
    layer = self_attention.SelfAttention(d_model, d_k, d_v)
    roles = [F.linear(x, w.mT) for w in weights.values()]
    theirs = F.scaled_dot_product_attention(*roles, attn_mask=mask)
    return functional_call(layer, weights, (x, mask)), theirs


@compare(self_attention.pointer_weights, "looking the wanted numbers up by `torch.gather`")
def _pointer_weights(inputs: Inputs):
    (names,) = inputs.sizes(1, 2)
    numbers, order = inputs.normal(names, 1), torch.tensor(inputs.sizes(names)).argsort()
    wanted = torch.tensor(inputs.sizes(names, 0, names - 1))
    own, asked = (F.one_hot(name, names).double() for name in (order, wanted))
    x = torch.cat([own, asked, numbers], dim=-1)
    roles = [x @ w.double() for w in self_attention.pointer_weights(names)]
    place = order.argsort()[wanted].unsqueeze(-1)
    return self_attention.scaled_dot_product_attention(*roles), numbers.gather(0, place)
