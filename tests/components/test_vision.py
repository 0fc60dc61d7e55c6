"""What the vision module refuses, and what its parts are for."""

import inspect

import pytest
import torch

from course_lib import vision
from course_lib.vision import VisionTransformer

patches = inspect.unwrap(vision.patches)


def test_patches_that_do_not_fill_the_image_are_refused():
    with pytest.raises(ValueError, match="patches of 3 x 3 pixels do not fill an image of 4 x 6"):
        patches(torch.zeros(1, 4, 6), 3)
    with pytest.raises(ValueError, match="patches of 0 x 0"):
        patches(torch.zeros(1, 4, 6), 0)
    with pytest.raises(ValueError, match="do not fill an image of 8 x 8"):
        VisionTransformer(10, 1, 8, 3, 1, 4, 2, 8)


def test_an_image_of_another_size_is_refused():
    model = VisionTransformer(10, 1, 8, 2, 1, 4, 2, 8)
    with pytest.raises(ValueError, match="the positions are those of 8 x 8 pixels"):
        model(torch.zeros(1, 4, 4))
