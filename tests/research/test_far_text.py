"""What lesson 04 concludes of slower hands and a text whose second half is its first, once more."""

import pytest
import torch

from course_lib.data import characters
from course_lib.instruments import results
from research.experiments.far_text import LONGEST, PERIODS, N, in_the_repetition, short, twice

KEPT = results.load("far_text")["figures"]["runs"]


@pytest.fixture(params=KEPT)
def second_half(request):
    """Return the mean loss of the repetition, by way of reading."""
    return {name: in_the_repetition(losses) for name, losses in request.param.items()}


def test_slower_hands_find_what_the_last_characters_do_not_have(second_half):
    assert second_half["slowed"] < second_half["slowed, last 32 shown"] - 1


@pytest.mark.parametrize("way", ["as it was", "clamped"])
def test_the_same_steps_without_slower_hands_gain_less(second_half, way):
    assert second_half[way] > second_half["slowed"] + 1


def test_three_seeds_were_kept():
    assert len(KEPT) == 3


def test_short_texts_repeat_themselves():
    read, following = next(short(0))
    texts = torch.cat([read, following[:, -1:]], dim=-1)
    assert texts.shape == (N, N + 1)
    periods = range(PERIODS[0], PERIODS[1] + 1)
    repeat = torch.stack([(texts[:, p:] == texts[:, :-p]).all(-1) for p in periods])
    assert repeat.any(0).all()
    assert repeat.any(1).sum() > 8, "not all after the same number"


def test_the_second_half_of_a_long_text_is_its_first():
    texts = twice(characters.split()[1][: LONGEST + 1][None])
    half = LONGEST // 2
    assert texts.shape == (1, LONGEST + 1)
    assert texts[:, half:-1].equal(texts[:, :half])
    assert texts[:, -1].equal(texts[:, 0])
