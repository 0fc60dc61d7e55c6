"""Lesson 02's pictures say in words what they show, of the functions that they are given."""

import html
import json
import re

import matplotlib
import pytest
import torch

matplotlib.use("agg")

from course_lib.attention import softmax
from course_lib.instruments import results
from course_lib.instruments.pictures import attention as pictures

NAMES = ["red", "lime", "blue"]
COLOURS = torch.eye(3)
KEPT = results.load("attention")["figures"]
BOTTLENECK = results.load("bottleneck")["figures"]


def answer(temperature):
    weights = softmax(torch.tensor([0.9, 0.5, 0.0]) / temperature)
    return weights, weights @ COLOURS


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (pictures.course_map, "Cross-attention is lit"),
        (pictures.one_step, "sum of the three products is the context c2"),
        (pictures.matrices, "gives scores E, 3 by 5"),
        (
            lambda: pictures.lookup("orange", NAMES, *answer(0.2)),
            "red 0.87, lime 0.12, blue 0.01; and the answer",
        ),
        (
            lambda: pictures.temperatures("orange", NAMES, answer),
            "0.01: red 1.00, #ff0000; 0.05: red 1.00, #ff0000; 0.1: red 0.98",
        ),
        (
            lambda: pictures.by_length(KEPT, {"attention": [0.5] * 12}, BOTTLENECK),
            "attention: 0.68, 0.76, 0.67",
        ),
        (
            lambda: pictures.alignments("A way", {"mine": (torch.eye(3), ["K", "T"], "kt")}),
            "mine, kt: K k 1.00, T t 1.00, stop · 1.00",
        ),
        (
            lambda: pictures.looks_and_uses(
                "F", torch.eye(2), 1 - torch.eye(2), ["F", "stop"], ["p", "h"], [("F", "h")]
            ),
            "Weight and drop: F: p 1.00 and 0.00, h 0.00 and 1.00. Framed: F over h.",
        ),
    ],
)
def test_a_picture_says_what_is_seen_in_it(displayed, draw, said):
    shown = displayed(draw)
    assert said in shown["text/plain"]
    assert html.escape(said) in shown["image/svg+xml"]


def test_the_slider_moves_the_functions_own_weights(displayed):
    shown = displayed(lambda: pictures.temperatures("orange", NAMES, answer))
    page = html.unescape(shown["text/html"])
    assert not re.search(r"\[\[[A-Z]+\]\]", page)
    temperatures, weights = (
        json.loads(re.search(rf"{name} = (\[.+?\]), {following}", page)[1])
        for name, following in (("temperatures", "weights"), ("weights", "answers"))
    )
    assert 0.1 in temperatures, "where the slider begins"
    for temperature, shares in zip(temperatures, weights, strict=True):
        expected = answer(temperature)[0]
        torch.testing.assert_close(torch.tensor(shares), expected, atol=0.01, rtol=0)


def test_the_nearest_colour_is_named():
    assert pictures.nearest(torch.tensor([0.9, 0.1, 0.0]), ["red", "lime"]) == "red"
    assert pictures.nearest(torch.tensor([0.5, 0.5, 0.5]), ["red", "grey"]) == "grey"


def test_what_was_not_written_is_not_framed(displayed):
    drawn = displayed(
        lambda: pictures.looks_and_uses("V", *torch.ones(2, 1, 2), ["V"], ["p", "h"], [("F", "h")])
    )
    assert "Framed" not in drawn["text/plain"]


def _shares(arm, steps=None):
    runs = KEPT[arm] if steps is None else BOTTLENECK["runs"][arm][steps]
    return torch.tensor([run["accuracy"] for run in runs])


def test_seeing_all_states_alike_is_no_better_than_one_vector():
    alike, vector = (_shares(arm).mean(0) for arm in ("all letters alike", "one vector"))
    assert (alike - vector).abs().max() < 0.03


def test_one_vector_four_times_as_wide_reads_words_of_12_letters_as_attention_does():
    twelve = KEPT["lengths"].index(12)
    for steps in ("1500", "6000"):
        wide, attention, narrow = (
            _shares(arm, steps)[:, twelve].mean()
            for arm in ("one vector of 256", "attention, 64", "one vector of 64")
        )
        assert abs(wide - attention) < 0.03
        assert attention > narrow + 0.2
    sizes = [
        BOTTLENECK["runs"][x]["1500"][0]["parameters"]
        for x in ("one vector of 256", "attention, 64")
    ]
    assert 8 < sizes[0] / sizes[1] < 8.5


def test_the_letter_with_the_most_weight_matters_most_and_others_matter_too():
    for run in results.load("attribution")["figures"]["runs"]:
        assert run["agree"] > 0.85
        assert run["walk"] < 0.75
        assert run["hidden"] > 0.5


def test_the_most_weighted_state_takes_three_quarters_of_the_drop_and_the_rest_a_fifth():
    for run in results.load("attribution")["figures"]["runs"]:
        assert 0.69 < run["most-weighted state alone"] / run["everywhere"] < 0.79
        assert 0.18 < run["all but this state"] / run["everywhere"] < 0.22
