"""The comparisons of `course_lib.real_models`."""

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import masks, real_models
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights


@compare(real_models.mean_pool, "`torch.masked.mean`")
def _mean_pool(inputs: Inputs):
    batch, (n, d) = inputs.batch(), inputs.sizes(2)
    states, mask = inputs.normal(*batch, n, d), inputs.mask(*batch, n, 1)
    mask[..., 0, :] = True
    theirs = torch.masked.mean(states, dim=-2, mask=mask.expand_as(states))
    return real_models.mean_pool(states, mask.squeeze(-1)), theirs


@compare(real_models.pairs_to_halves, "the even rows of each head, then the odd ones, by slices")
def _pairs_to_halves(inputs: Inputs):
    heads, pairs, d_model = inputs.sizes(3)
    weight = inputs.normal(heads * 2 * pairs, d_model)
    theirs = [torch.cat([head[::2], head[1::2]]) for head in weight.chunk(heads)]
    return real_models.pairs_to_halves(weight, heads), torch.cat(theirs)


@compare(real_models.grouped_query_attention, "`F.scaled_dot_product_attention(enable_gqa=True)`")
def _grouped_query_attention(inputs: Inputs):
    batch, (groups, share, n_q, n_k, d_k, d_v) = inputs.sizes(1), inputs.sizes(6)
    q = inputs.normal(*batch, groups * share, n_q, d_k)
    k, v = inputs.normal(*batch, groups, n_k, d_k), inputs.normal(*batch, groups, n_k, d_v)
    mask = inputs.mask(groups * share, n_q, n_k)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return real_models.grouped_query_attention(q, k, v, mask), theirs


@compare(real_models.GroupedQueryAttention, "`nn.MultiheadAttention`, its key heads repeated")
def _grouped_query_layer(inputs: Inputs):
    groups, share, d_k, n = inputs.sizes(4, 1, 3)
    heads, d_model = groups * share, groups * share * d_k
    ours = real_models.GroupedQueryAttention(d_model, heads, groups)
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


@compare(real_models.SwiGLU, "`F.linear`, `F.glu`")
def _swiglu(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    ours = real_models.SwiGLU(d_model, d_ff)
    weights, x = draw_weights(inputs, ours), inputs.normal(*inputs.batch(), d_model)
    open_, gate = (F.linear(x, weights[f"w_{i}.weight"]) for i in (3, 1))
    # swish(g) = g sigmoid(g), and glu multiplies by the sigmoid of its second half
    hidden = F.glu(torch.cat([open_ * gate, gate], dim=-1))
    return functional_call(ours, weights, x), F.linear(hidden, weights["w_2.weight"])


@compare(real_models.SSRU, "each state as a sum over all tokens before it")
def _ssru(inputs: Inputs):
    n, d_model = inputs.sizes(2)
    ours = real_models.SSRU(d_model)
    weights, x = draw_weights(inputs, ours), inputs.normal(*inputs.batch(), n, d_model)
    kept = torch.sigmoid(x @ weights["w_f"] + weights["b_f"])
    added = (1 - kept) * (x @ weights["w"])
    # what token i added is multiplied by what each later token keeps
    states = torch.zeros_like(x)
    for i in range(n):
        left = [kept[..., i + 1 : t + 1, :].prod(-2) for t in range(i, n)]
        late = added[..., i : i + 1, :] * torch.stack(left, -2)
        states = states + F.pad(late, (0, 0, i, 0))
    return functional_call(ours, weights, x), F.relu(states)
