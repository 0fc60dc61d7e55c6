"""Lesson 12: the fit of a power law, held against torch's least squares."""

import torch

from course_lib import scaling
from course_lib.verify.comparison import Inputs, compare


@compare(scaling.fit_power_law, "`torch.linalg.lstsq` of the logarithms")
def _fit_power_law(inputs: Inputs):
    (runs,) = inputs.sizes(1, 3, 9)
    log_x, log_y = inputs.normal(runs), inputs.normal(runs)
    columns = torch.stack([torch.ones_like(log_x), -log_x], dim=-1)
    log_c, exponent = torch.linalg.lstsq(columns, log_y.unsqueeze(-1)).solution.squeeze(-1)
    ours = torch.stack(scaling.fit_power_law(log_x.exp(), log_y.exp()))
    return ours, torch.stack([log_c.exp(), exponent])
