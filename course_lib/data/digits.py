"""Handwritten digits: 1,797 images of 8 x 8 pixels (Alpaydin & Kaynak 1998)."""

import functools
import gzip

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data import store

MEMBER = "sklearn/datasets/data/digits.csv.gz"
SIDE, CLASSES = 8, 10
BRIGHTEST = 16  # the largest value of a pixel in the file
HELD_OUT = 450  # images, the last ones in the file


@functools.cache
def images() -> tuple[Float[Tensor, "all 1 8 8"], Int[Tensor, " all"]]:
    """Return the images, each pixel from 0 to 1, and the digits that they show.

    Raises `store.NotFetched` or `store.Damaged`.
    """
    lines = gzip.decompress(store.read("digits", MEMBER)).decode("ascii").splitlines()
    rows = torch.from_numpy(np.loadtxt(lines, delimiter=",", dtype=np.float32))
    return rows[:, :-1].reshape(-1, 1, SIDE, SIDE) / BRIGHTEST, rows[:, -1].long()


def split() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return (images, digits) to learn from, the first 1,347, and those held out, the last 450.

    Raises `store.NotFetched` or `store.Damaged`.
    """
    pixels, digits = images()
    return (pixels[:-HELD_OUT], digits[:-HELD_OUT]), (pixels[-HELD_OUT:], digits[-HELD_OUT:])
