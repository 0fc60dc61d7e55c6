"""Lesson 08: the network with a GELU, held against torch's functions."""

from torch.nn import functional as F

from course_lib import gelu_feed_forward
from course_lib.verify.comparison import Inputs, compare


@compare(gelu_feed_forward.gelu_feed_forward, "`F.linear`, `F.gelu`, `F.linear`")
def _gelu_feed_forward(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    x = inputs.normal(*inputs.batch(), d_model)
    w_1, w_2 = inputs.normal(d_model, d_ff), inputs.normal(d_ff, d_model)
    b_1, b_2 = inputs.normal(d_ff), inputs.normal(d_model)
    theirs = F.linear(F.gelu(F.linear(x, w_1.mT, b_1)), w_2.mT, b_2)
    return gelu_feed_forward.gelu_feed_forward(x, w_1, b_1, w_2, b_2), theirs
