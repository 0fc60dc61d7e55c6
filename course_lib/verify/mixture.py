"""12_experts: a mixture of experts, held against one that sends every token everywhere."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import mixture
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights


@compare(mixture.route, "`F.softmax` with all other scores at minus infinity")
def _route(inputs: Inputs):
    d_model, experts = inputs.sizes(2, 2)
    (k,) = inputs.sizes(1, 1, experts)
    x, w = inputs.normal(*inputs.batch(), d_model), inputs.normal(d_model, experts)
    scores = x @ w
    lowest_kept = scores.sort(dim=-1, descending=True).values[..., k - 1 : k]
    weights = F.softmax(scores.masked_fill(scores < lowest_kept, -torch.inf), dim=-1)
    return mixture.route(x, w, k)[1], weights.sort(dim=-1, descending=True).values[..., :k]


@compare(mixture.Mixture, "every expert on every token, `F.linear`, most of them times 0")
def _mixture(inputs: Inputs):
    d_model, d_ff, experts = inputs.sizes(3, 2)
    (k,) = inputs.sizes(1, 1, experts)
    layer = mixture.Mixture(d_model, d_ff, experts, k)
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


@compare(mixture.load_balance, "a loop over experts")
def _load_balance(inputs: Inputs):
    tokens, experts = inputs.sizes(2, 2)
    probabilities = inputs.normal(tokens, experts)  # any numbers will do
    chosen = probabilities.topk(2).indices
    terms = [
        (chosen == expert).double().mean() * probabilities[:, expert].mean()
        for expert in range(experts)
    ]
    return mixture.load_balance(probabilities, chosen), experts * sum(terms)
