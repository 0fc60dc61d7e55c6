"""The comparisons of `course_lib.optimizers`."""

import torch

from course_lib import optimizers
from course_lib.verify.comparison import Inputs, compare


@compare(optimizers.adamw_step, "three steps of `torch.optim.AdamW`")
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
        ours, first, second = optimizers.adamw_step(ours, gradient, first, second, step, 0.1, 0.2)
        theirs.grad = 2 + x.sin()
        optimizer.step()
    return ours, theirs


@compare(optimizers.orthogonalise, "the polynomial of each singular value, by `torch.linalg.svd`")
def _orthogonalise(inputs: Inputs):
    gradient = inputs.normal(*inputs.sizes(2))
    u, s, v = torch.linalg.svd(gradient, full_matrices=False)
    s = s / (s.square().sum().sqrt() + 1e-7)
    a, b, c = optimizers.QUINTIC
    for _ in range(5):
        s = a * s + b * s**3 + c * s**5
    return optimizers.orthogonalise(gradient), u * s @ v
