"""Lesson 10: Muon's step, held against singular values."""

import torch

from course_lib import muon
from course_lib.verify.comparison import Inputs, compare


@compare(muon.orthogonalise, "the same polynomial of each singular value, by `torch.linalg.svd`")
def _orthogonalise(inputs: Inputs):
    gradient = inputs.normal(*inputs.sizes(2))
    u, s, v = torch.linalg.svd(gradient, full_matrices=False)
    s = s / (s.square().sum().sqrt() + 1e-7)
    a, b, c = muon.QUINTIC
    for _ in range(5):
        s = a * s + b * s**3 + c * s**5
    return muon.orthogonalise(gradient), u * s @ v
