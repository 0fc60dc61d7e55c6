"""The digits are all there, and none is in both parts."""

import pytest
import torch

from course_lib.data import digits, store

pytestmark = pytest.mark.skipif(
    not store.is_fetched("digits"), reason="needs the digits: run `course fetch digits`"
)


def test_there_are_1797_images_of_ten_digits():
    images, shown = digits.images()
    assert images.shape == (1797, 1, 8, 8)
    assert images.min() == 0
    assert images.max() == 1
    assert shown[:10].tolist() == list(range(10))
    assert shown.bincount().min() > 170


def test_the_two_parts_are_the_whole():
    (learning, _), (held_out, shown) = digits.split()
    assert len(held_out) == len(shown) == 450
    assert torch.equal(torch.cat([learning, held_out]), digits.images()[0])
