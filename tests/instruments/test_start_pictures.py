"""Lesson 00's pictures: what is drawn is what the models did, and holds for other batches."""

import html

import matplotlib
import pytest
import torch

matplotlib.use("agg")

from course_lib.instruments import results
from course_lib.instruments.pictures import start as pictures

LOOK = results.load("first_look")["figures"]
WEIGHTS = torch.tensor(LOOK["weights"])
PATHS = {0.1: [0.0, 0.4], 0.4: [0.0, 1.6], 0.9: [0.0, 3.6], 1.1: [0.0, 4.4] * 6}


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (pictures.course_map, "all parts in colour"),
        (pictures.two_machines, "never sees the code"),
        (lambda: pictures.head(WEIGHTS, LOOK["target"], LOOK["source"]), "preto has 0.96 on black"),
        (lambda: pictures.with_shapes(WEIGHTS), "11 tokens become 11 × 512"),
        (lambda: pictures.with_shapes(WEIGHTS), "10 × 11 weights for each head"),
        (lambda: pictures.with_shapes(WEIGHTS), "the linear layer makes 10 × 32000"),
        (lambda: pictures.learning_rates(PATHS), "the target is 2"),
    ],
)
def test_a_picture_says_what_is_seen_in_it(displayed, draw, said):
    shown = displayed(draw)
    assert said in shown["text/plain"]
    assert html.escape(said) in shown["image/svg+xml"]


def test_the_supervised_head_looks_at_the_translated_token_across_the_diagonal():
    best = [LOOK["source"][column] for column in WEIGHTS.argmax(-1).tolist()]
    assert (best[1], best[2]) == ("cat", "black")


def test_rate_0_9_comes_closer_and_1_1_does_not_whatever_the_batches():
    squares = torch.randn(1000, 40, 64, generator=torch.Generator().manual_seed(0)).square()
    factors = {rate: (1 - 2 * rate * squares.mean(-1)).abs().prod(-1) for rate in (0.9, 1.1)}
    closer = {rate: (left < 1).float().mean() for rate, left in factors.items()}
    assert closer[0.9] > 0.99
    assert closer[1.1] < 0.05
