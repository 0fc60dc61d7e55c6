"""Lesson 15: scans and state spaces, held against their closed forms and against plain loops."""

import torch
from torch import Tensor

from course_lib import state_space
from course_lib.verify.comparison import Inputs, compare


@compare(state_space.scan, "each state as a weighted sum of all that came before")
def _scan(inputs: Inputs):
    a, b, shown = _steps(inputs)
    return state_space.scan(a * shown, b), _weighted_sums(a * shown, b)


@compare(state_space.parallel_scan, "the same")
def _parallel_scan(inputs: Inputs):
    a, b, shown = _steps(inputs)
    return state_space.parallel_scan(a * shown, b), _weighted_sums(a * shown, b)


@compare(state_space.selective, "its recurrence, token by token and number by number")
def _selective(inputs: Inputs):
    n, d, s = inputs.sizes(3)
    x, delta, a = inputs.normal(n, d), inputs.normal(n, d), inputs.normal(d, s)
    b, c = inputs.normal(n, s), inputs.normal(n, s)
    ours = state_space.selective(x, delta.abs(), -a.abs(), b, c)
    delta, a = delta.abs(), -a.abs()
    state = [[torch.zeros((), dtype=x.dtype) for _ in range(s)] for _ in range(d)]
    rows = []
    for t in range(n):
        for i in range(d):
            for j in range(s):
                kept = torch.exp(delta[t, i] * a[i, j])
                held = (kept - 1) / a[i, j] * b[t, j] * x[t, i]
                state[i][j] = kept * state[i][j] + held
        states = torch.stack([torch.stack(channel) for channel in state])
        rows.append((c[t] * states).sum(-1))
    return ours, torch.stack(rows)


def _steps(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Draw decays, what is new, and a mask of the decays that are not 0."""
    batch, (n,), (d,) = inputs.batch(), inputs.sizes(1, 2, 9), inputs.sizes(1)
    a, b = inputs.normal(*batch, n, d), inputs.normal(*batch, n, d)
    return a, b, inputs.mask(n, d)


def _weighted_sums(a: Tensor, b: Tensor) -> Tensor:
    rows = []
    for i in range(b.shape[-2]):
        decays = [a[..., j + 1 : i + 1, :].prod(dim=-2) for j in range(i + 1)]
        rows.append(sum(decay * b[..., j, :] for j, decay in enumerate(decays)))
    return torch.stack([torch.as_tensor(row) for row in rows], dim=-2)
