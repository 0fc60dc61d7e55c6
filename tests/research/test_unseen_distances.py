"""What lesson 04 concludes from its models of 32 characters, in every kept run."""

import pytest
import torch

from course_lib.instruments import results
from course_lib.positions import rotary
from research.experiments.unseen_distances import LONGEST, Gapped, N

KEPT = results.load("unseen_distances")["figures"]["runs"]


@pytest.fixture(params=KEPT)
def end(request):
    """Return the loss of the last window, by way of reading."""
    return {name: losses[-1] for name, losses in request.param.items()}


def test_new_distances_break_a_model_and_a_clamp_mends_it(end):
    assert end["as it was"] > end["clamped"] + 1
    assert abs(end["clamped"] - end["last 32"]) < 0.15


def test_a_model_that_has_met_the_distances_in_short_texts_does_not_break(end):
    assert end["gaps in training"] < end["clamped"] + 0.15


def test_slower_hands_and_fifty_steps_do_more_than_either(end):
    both = end["slowed, 50 steps"]
    assert both < end["as it was, 50 steps"] - 0.1
    assert both < end["slowed"] - 0.4


def test_a_gap_is_in_training_alone_and_goes_beyond_what_short_texts_have():
    torch.manual_seed(0)
    scheme, x = Gapped(), torch.ones(N, 2)
    scheme.encode(x)
    shift = scheme.shift
    assert shift[0] == 0
    assert N < shift[-1] < LONGEST
    assert set(shift.tolist()) == {0, shift[-1].item()}
    turned = scheme.turn(x, torch.arange(N))
    torch.testing.assert_close(turned, rotary(x, torch.arange(N) + shift))
    scheme.eval().encode(x)
    assert scheme.turn(x, torch.arange(N)).equal(rotary(x, torch.arange(N)))
