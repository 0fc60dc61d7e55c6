"""The comparisons of `course_lib.translation`."""

import torch
from torch.nn import functional as F

from course_lib import translation
from course_lib.verify.comparison import Inputs, compare


@compare(
    translation.smoothed_cross_entropy,
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
    ours = translation.smoothed_cross_entropy(
        logits, targets.reshape(logits.shape[:-1]), tenths / 10, -100
    )
    return ours, theirs
