"""Lesson 10: the steps of AdamW, held against torch's."""

import torch

from course_lib import adamw
from course_lib.verify.comparison import Inputs, compare


@compare(adamw.adamw_step, "three steps of `torch.optim.AdamW`")
def _adamw_step(inputs: Inputs):
    shape = inputs.sizes(2)
    parameter, gradients = inputs.normal(*shape), inputs.normal(3, *shape)
    theirs = parameter.clone()
    optimizer = torch.optim.AdamW([theirs], lr=0.1, weight_decay=0.2, differentiable=True)
    ours, first, second = parameter, torch.zeros_like(parameter), torch.zeros_like(parameter)
    for step, gradient in enumerate(gradients, start=1):
        ours, first, second = adamw.adamw_step(ours, gradient, first, second, step, 0.1, 0.2)
        theirs.grad = gradient
        optimizer.step()
    return ours, theirs
