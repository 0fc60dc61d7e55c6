"""The comparisons of `course_lib.scaling`."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import scaling
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights


@compare(scaling.fit_power_law, "`torch.linalg.lstsq` of the logarithms")
def _fit_power_law(inputs: Inputs):
    (runs,) = inputs.sizes(1, 3, 9)
    log_x, log_y = inputs.normal(runs), inputs.normal(runs)
    columns = torch.stack([torch.ones_like(log_x), -log_x], dim=-1)
    log_c, exponent = torch.linalg.lstsq(columns, log_y.unsqueeze(-1)).solution.squeeze(-1)
    ours = torch.stack(scaling.fit_power_law(log_x.exp(), log_y.exp()))
    return ours, torch.stack([log_c.exp(), exponent])


@compare(scaling.route, "`F.softmax` with all other scores at minus infinity")
def _route(inputs: Inputs):
    d_model, experts = inputs.sizes(2, 2)
    (k,) = inputs.sizes(1, 1, experts)
    x, w = inputs.normal(*inputs.batch(), d_model), inputs.normal(d_model, experts)
    scores = x @ w
    lowest_kept = scores.sort(dim=-1, descending=True).values[..., k - 1 : k]
    weights = F.softmax(scores.masked_fill(scores < lowest_kept, -torch.inf), dim=-1)
    return scaling.route(x, w, k)[1], weights.sort(dim=-1, descending=True).values[..., :k]


@compare(scaling.Mixture, "every expert on every token, `F.linear`, most of them times 0")
def _mixture(inputs: Inputs):
    d_model, d_ff, experts = inputs.sizes(3, 2)
    (k,) = inputs.sizes(1, 1, experts)
    layer = scaling.Mixture(d_model, d_ff, experts, k)
    weights, x = draw_weights(inputs, layer), inputs.normal(*inputs.batch(), d_model)
    scores = x @ weights["w"]
    lowest_kept = scores.sort(dim=-1, descending=True).values[..., k - 1 : k]
    shares = F.softmax(scores.masked_fill(scores < lowest_kept, -torch.inf), dim=-1)
    y = torch.zeros_like(x)
    for number in range(experts):
        w_1, b_1, w_2, b_2 = (
            weights[f"experts.{number}.{name}"] for name in ("w_1", "b_1", "w_2", "b_2")
        )
        done = F.linear(F.relu(F.linear(x, w_1.mT, b_1)), w_2.mT, b_2)
        y = y + shares[..., number, None] * done
    return functional_call(layer, weights, x), y


@compare(scaling.load_balance, "a loop over experts")
def _load_balance(inputs: Inputs):
    tokens, experts = inputs.sizes(2, 2)
    probabilities = inputs.normal(tokens, experts)  # any numbers will do
    chosen = probabilities.topk(2).indices
    terms = [
        (chosen == expert).double().mean() * probabilities[:, expert].mean()
        for expert in range(experts)
    ]
    return scaling.load_balance(probabilities, chosen), experts * sum(terms)
