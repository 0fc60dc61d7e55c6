"""Masked tokens: what the exercise cannot ask of the component, its message."""

import inspect

import pytest
import torch

from course_lib import pretraining


def test_a_share_that_is_no_probability_is_refused():
    with pytest.raises(ValueError, match=r"from 0 to 1, and not 1\.5"):
        inspect.unwrap(pretraining.mask_tokens)(torch.arange(3), 1.5, 9, 8, (), 0)
