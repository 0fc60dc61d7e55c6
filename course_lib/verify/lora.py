"""Lesson 17: low-rank changes, held against one merged matrix and against a naive loop."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import lora
from course_lib.verify.comparison import Inputs, compare


def _parts(inputs: Inputs):
    """Draw a weight of no square shape, a, b and alpha."""
    d_out, d_in, rank, quarters = inputs.sizes(4)
    w, a = inputs.normal(d_out, d_in), inputs.normal(rank, d_in)
    return w, a, inputs.normal(d_out, rank), quarters / 4


@compare(lora.LowRankLinear, "`F.linear` by the weight with its change written into it")
def _low_rank_linear(inputs: Inputs):
    w, a, b, alpha = _parts(inputs)
    (d_out, d_in), rank = w.shape, len(a)
    x, bias = inputs.normal(*inputs.batch(), d_in), inputs.normal(d_out)
    ours = lora.LowRankLinear(torch.nn.Linear(d_in, d_out), rank, alpha)
    weights = {"a": a, "b": b, "linear.weight": w, "linear.bias": bias}
    theirs = F.linear(x, w + torch.einsum("or,ri->oi", b, a).mul(alpha).div(rank), bias)
    return functional_call(ours, weights, x), theirs


@compare(lora.merged, "a loop over the ranks, of outer products")
def _merged(inputs: Inputs):
    w, a, b, alpha = _parts(inputs)
    theirs = w
    for row, column in zip(a, b.mT, strict=True):
        theirs = theirs + torch.outer(column, row) * alpha / len(a)
    return lora.merged(w, a, b, alpha), theirs
