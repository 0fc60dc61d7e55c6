"""Lesson 10: the feed-forward network with a squared ReLU, held against `einsum`."""

import torch
from torch.func import functional_call

from course_lib import squared_relu
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights


@compare(squared_relu.SquaredReLU, "`torch.einsum`, `torch.where`")
def _squared_relu(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    ours = squared_relu.SquaredReLU(d_model, d_ff)
    weights, x = draw_weights(inputs, ours), inputs.normal(*inputs.batch(), d_model)
    hidden = torch.einsum("...d,fd->...f", x, weights["w_1.weight"])
    hidden = torch.where(hidden > 0, hidden * hidden, 0)
    theirs = torch.einsum("...f,df->...d", hidden, weights["w_2.weight"])
    return functional_call(ours, weights, x), theirs
