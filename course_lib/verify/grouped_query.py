"""Lesson 09: attention with shared keys, held against torch's."""

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import grouped_query, masks
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights


@compare(grouped_query.grouped_query_attention, "`F.scaled_dot_product_attention(enable_gqa=True)`")
def _grouped_query_attention(inputs: Inputs):
    batch, (groups, share, n_q, n_k, d_k, d_v) = inputs.sizes(1), inputs.sizes(6)
    q = inputs.normal(*batch, groups * share, n_q, d_k)
    k, v = inputs.normal(*batch, groups, n_k, d_k), inputs.normal(*batch, groups, n_k, d_v)
    mask = inputs.mask(groups * share, n_q, n_k)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return grouped_query.grouped_query_attention(q, k, v, mask), theirs


@compare(grouped_query.GroupedQueryAttention, "`nn.MultiheadAttention`, its key heads repeated")
def _grouped_query_layer(inputs: Inputs):
    groups, share, d_k, n = inputs.sizes(4, 1, 3)
    heads, d_model = groups * share, groups * share * d_k
    ours = grouped_query.GroupedQueryAttention(d_model, heads, groups)
    weights, x = draw_weights(inputs, ours), inputs.normal(*inputs.sizes(1), n, d_model)
    repeated = {
        role: weights[f"w_{role}.weight"].unflatten(0, (groups, d_k)).repeat_interleave(share, 0)
        for role in "kv"
    }
    theirs = nn.MultiheadAttention(d_model, heads, bias=False, batch_first=True)
    roles = [weights["w_q.weight"], *(w.flatten(0, 1) for w in repeated.values())]
    torchs = {"in_proj_weight": torch.cat(roles), "out_proj.weight": weights["w_o.weight"]}
    mask = masks.causal_mask(n)
    options = {"need_weights": False, "attn_mask": ~mask}
    expected, _ = functional_call(theirs, torchs, (x, x, x), options)
    return functional_call(ours, weights, (x, x, x, mask)), expected
