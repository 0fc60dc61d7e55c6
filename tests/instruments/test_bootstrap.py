"""The laws of the interval around a difference of two translators."""

import pytest
import torch

from course_lib.instruments.bootstrap import bleu_counts, bleu_of_counts, interval
from course_lib.translation import bleu, cut

REFERENCES = ["the light in the kitchen is off", "lock the front door, please", "a b c d e"] * 20
WORSE = ["the light in kitchen is the off", "lock the front door, please", "a b c d"] * 20


def test_a_corpus_has_the_bleu_of_the_sums_of_its_counts():
    sums = torch.tensor([*map(bleu_counts, WORSE, REFERENCES)]).double().sum(0)
    expected = bleu([*map(cut, WORSE)], [*map(cut, REFERENCES)])
    assert bleu_of_counts(sums).item() == pytest.approx(expected)


def test_equal_translators_differ_by_nothing_and_a_better_one_is_ahead_at_both_ends():
    assert interval(WORSE, WORSE, REFERENCES) == (0, 0)
    low, high = interval(REFERENCES, WORSE, REFERENCES)
    assert 0 < low < 100 - bleu([*map(cut, WORSE)], [*map(cut, REFERENCES)]) < high
    back = interval(WORSE, REFERENCES, REFERENCES)
    assert back == pytest.approx((-high, -low))
