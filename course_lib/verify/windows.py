"""Lesson 01: windows of words, held against torch's convolution."""

from torch.nn import functional as F

from course_lib import windows
from course_lib.verify.comparison import Inputs, compare


@compare(windows.word_window, "`F.conv1d`")
def _word_window(inputs: Inputs):
    batch, (n, d_in, d_out, half) = inputs.batch(), inputs.sizes(4)
    x, weight = inputs.normal(*batch, n, d_in), inputs.normal(2 * half - 1, d_in, d_out)
    bias = inputs.normal(d_out)
    channels = x.reshape(-1, n, d_in).mT
    theirs = F.conv1d(channels, weight.permute(2, 1, 0), bias, padding="same").mT
    return windows.word_window(x, weight, bias), theirs.reshape(*batch, n, d_out)
