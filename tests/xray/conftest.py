from string import ascii_lowercase

import pytest
import torch

from course_lib.transformer import Transformer

WORDS = [*ascii_lowercase, "start", "stop"]


@pytest.fixture
def words():
    return WORDS


@pytest.fixture(scope="session")
def transformer():
    """A Transformer that has learned nothing, in the sizes of lesson 08."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Transformer(28, 2, 64, 4, 256, 9, norm="pre")
