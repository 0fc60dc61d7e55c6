"""lesson 09: the gated feed-forward network, held against torch's functions."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import swiglu
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights


@compare(swiglu.SwiGLU, "`F.linear`, `F.glu`")
def _swiglu(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    ours = swiglu.SwiGLU(d_model, d_ff)
    weights, x = draw_weights(inputs, ours), inputs.normal(*inputs.batch(), d_model)
    open_, gate = (F.linear(x, weights[f"w_{i}.weight"]) for i in (3, 1))
    # swish(g) = g sigmoid(g), and glu multiplies by the sigmoid of its second half
    hidden = F.glu(torch.cat([open_ * gate, gate], dim=-1))
    return functional_call(ours, weights, x), F.linear(hidden, weights["w_2.weight"])
