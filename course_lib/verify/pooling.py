"""Lesson 09: the mean of a sentence's words, held against torch's."""

import torch

from course_lib import pooling
from course_lib.verify.comparison import Inputs, compare


@compare(pooling.mean_pool, "`torch.masked.mean`")
def _mean_pool(inputs: Inputs):
    batch, (n, d) = inputs.batch(), inputs.sizes(2)
    states, mask = inputs.normal(*batch, n, d), inputs.mask(*batch, n, 1)
    mask[..., 0, :] = True
    theirs = torch.masked.mean(states, dim=-2, mask=mask.expand_as(states))
    return pooling.mean_pool(states, mask.squeeze(-1)), theirs
