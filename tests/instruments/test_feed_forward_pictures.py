"""Lesson 05's pictures say in words what they show, and hold the sentences beside them."""

import html
import json
import re

import matplotlib
import pytest
import torch

matplotlib.use("agg")

from course_lib.attention import softmax
from course_lib.instruments import results
from course_lib.instruments.pictures import feed_forward as pictures

UNITS = results.load("units")["figures"]
XOR = results.load("two_cures")["figures"]["XOR"]
W_1 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
SCORES = torch.tensor([[2.0, 0, 1, 3], [0, 1, 2, 1], [1, 3, 2, 4], [2, 0, 1, 1]])
VISIBLE = torch.ones(4, 4).bool().tril()
LOSSES = {"Ann": 2.0, "Bob": 0.5, "Cleo": 1.5, "Dan": 1.75}
RISING = torch.tensor([1.0, 2.0, 3.0, 4.0])


def hidden(x):
    return (x @ W_1).relu()


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (pictures.shifted, "into the inputs: start, Shall, I, compare"),
        (
            lambda: pictures.masked(SCORES, VISIBLE, softmax(SCORES, VISIBLE)),
            "1.00; 0.27 and 0.73; 0.09 and 0.67 and 0.24;",
        ),
        (
            lambda: pictures.boasts(LOSSES, {x: y + RISING for x, y in LOSSES.items()}, 84),
            "Ann 3.00, 4.00 and 6.00, and 2.00 on whole lines; Bob 1.50, 2.50 and 4.50",
        ),
        (pictures.network, "each token goes through the network by itself"),
        (
            lambda: pictures.folded(hidden, W_1),
            "good at (2, 0), not bad at (0, 2), bad at (0, 0)",
        ),
        (lambda: pictures.units(UNITS), "months: 6 of 6 above it, 0 others"),
        (pictures.smallest_block, "no residual connection and no norm"),
    ],
)
def test_a_picture_says_what_is_seen_in_it(displayed, draw, said):
    shown = displayed(draw)
    assert said in shown["text/plain"]
    assert html.escape(said) in shown["image/svg+xml"]


def test_the_slider_folds_by_the_units_that_it_is_given(displayed):
    for units in (hidden, lambda x: x @ W_1):
        shown = displayed(lambda units=units: pictures.folded(units, W_1))
        page = html.unescape(shown["text/html"])
        assert not re.search(r"\[\[[A-Z]+\]\]", page)
        stages = torch.tensor(json.loads(re.search(r"stages = (\[.+?\]), names", page)[1]))
        torch.testing.assert_close(stages[2], units(stages[0]), atol=1e-2, rtol=0)


def test_attention_learns_xor_among_other_tokens_and_not_of_a_lone_one():
    for run in XOR["attention"]["0.01"]:
        assert run["accuracy"][-1] > 0.92
        assert run["alone"] < 0.77, "three of four cases, up to chance"
    alone = [x["alone"] for x in XOR["feed-forward, no constant"]["0.01"]]
    assert min(alone) > 0.99


def test_five_of_seven_kinds_have_a_unit_that_knows_them():
    wrong = []
    for name, unit in UNITS["kinds"].items():
        fires = [x > unit["threshold"] for x in unit["held"]]
        wrong += [name] * (fires != [kind == name for kind in UNITS["of"]])
    assert wrong == ["body parts", "negations"]


def test_no_unit_separates_tokens_that_have_nothing_in_common_as_it_does_a_kind():
    gaps = [unit["gap"] for unit in UNITS["kinds"].values()]
    assert max(UNITS["random"]) < min(gaps) / 4
