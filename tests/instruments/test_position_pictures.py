"""Lesson 04's pictures say what they draw, of the function that they are given."""

import html
import json
import re

import matplotlib
import pytest
import torch

matplotlib.use("agg")

from course_lib.instruments import plots
from course_lib.instruments.pictures import positions as pictures
from course_lib.positions import rotary, sinusoidal

LOSSES = {"as it was": torch.tensor([2.0, 3.0, 3.5]), "last 32": torch.tensor([2.1, 2.2])}
RUN = {name: loss.tolist() for name, loss in LOSSES.items()}


def still(x, positions, base):
    return x


@pytest.fixture
def shown(monkeypatch):
    outputs = []
    monkeypatch.setattr(plots, "display", lambda data, **_: outputs.append(data))
    return outputs


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (pictures.three_places, "Three: a bias b(i, j) is added to the score"),
        (pictures.counter_and_waves, "four sine waves"),
        (lambda: pictures.waves(sinusoidal(20, 6)), "20 positions by 3 pairs"),
        (
            lambda: pictures.similar_positions({"one row": torch.ones(60, 4)}, shown=60),
            "one row: 1.00 at distance 1, 1.00 at distance 10, 1.00 at distance 50",
        ),
        (pictures.clocks, "i = 7 and j = 5: 0.56; i = 5 and j = 1: 0.27"),
        (lambda: pictures.clocks(still), "i = 5 and j = 1: 2.00"),
        (
            lambda: pictures.loss_by_position("It fails", LOSSES, [RUN]),
            "up to character 96; from 0 to 32 is shaded: trained. as it was: 2.00, 3.00, 3.50",
        ),
    ],
)
def test_a_picture_says_what_is_seen_in_it(shown, draw, said):
    draw()
    [output] = shown
    assert said in output["text/plain"]
    assert html.escape(said) in output["image/svg+xml"]


def test_the_hands_of_a_moving_clock_are_the_functions_own(shown):
    for turn in (rotary, still):
        pictures.clocks_by_hand(turn)
        page = html.unescape(shown[-1]["text/html"])
        hands = torch.tensor(json.loads(re.search(r"hands = (\[.+?\]), far", page)[1]))
        angles = torch.atan2(hands[..., 1], hands[..., 0])
        expected = torch.tensor([1.0, 0.1]) * (turn is rotary)
        torch.testing.assert_close(angles[1], expected)
        assert not re.search(r"\[\[[A-Z]+\]\]", page)
