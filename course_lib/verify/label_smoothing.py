"""Lesson 11: the smoothed loss, held against torch's."""

import torch
from torch.nn import functional as F

from course_lib import label_smoothing
from course_lib.verify.comparison import Inputs, compare


@compare(
    label_smoothing.smoothed_cross_entropy,
    "`F.cross_entropy` with `label_smoothing`, some targets ignored",
)
def _smoothed_cross_entropy(inputs: Inputs):
    batch, [vocab], [tenths] = inputs.batch(), inputs.sizes(1, 2), inputs.sizes(1, 0, 10)
    logits = inputs.normal(*batch, vocab)
    count = logits[..., 0].numel()
    counted = inputs.mask(2, count)[1]
    counted[0] = True
    targets = torch.tensor(inputs.sizes(count, 0, vocab - 1)).where(counted, -100)
    theirs = F.cross_entropy(
        logits.reshape(count, vocab), targets, ignore_index=-100, label_smoothing=tenths / 10
    )
    ours = label_smoothing.smoothed_cross_entropy(
        logits, targets.reshape(logits.shape[:-1]), tenths / 10, -100
    )
    return ours, theirs
