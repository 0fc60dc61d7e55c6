"""Lesson 10: the steps of AdamW, held against torch's."""

import torch

from course_lib import adamw
from course_lib.verify.comparison import Inputs, compare


@compare(adamw.adamw_step, "three steps of `torch.optim.AdamW`")
def _adamw_step(inputs: Inputs):
    shape = inputs.sizes(2)
    parameter, drawn = inputs.normal(*shape), inputs.normal(3, *shape)
    theirs = parameter.clone()
    optimizer = torch.optim.AdamW([theirs], lr=0.1, weight_decay=0.2, differentiable=True)
    ours, first, second = parameter, torch.zeros_like(parameter), torch.zeros_like(parameter)
    # torch would count its steps in 32 bits
    kept = {"step": parameter.new_zeros(()), "exp_avg": first, "exp_avg_sq": second}
    optimizer.state[theirs] = {name: x.clone() for name, x in kept.items()}
    for step, x in enumerate(drawn, start=1):
        # away from 0, near which the root of the squared gradient is steep
        gradient = 2 + x.sin()
        ours, first, second = adamw.adamw_step(ours, gradient, first, second, step, 0.1, 0.2)
        theirs.grad = 2 + x.sin()
        optimizer.step()
    return ours, theirs
