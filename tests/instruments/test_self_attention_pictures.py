"""Lesson 03's pictures say in words what they show, and hold the sentences beside them."""

import html

import matplotlib
import pytest
import torch

matplotlib.use("agg")

from course_lib.data import pointers
from course_lib.instruments import results
from course_lib.instruments.pictures import self_attention as pictures
from course_lib.self_attention import pointer_weights, project

SENTENCE, FOUND = pointers.sentences(1, names=3, generator=torch.Generator().manual_seed(0))
X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
SWAP, DOUBLE = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]])
ITSELF = results.load("itself")["figures"]
POINTERS = results.load("pointers")["figures"]["best"]
SENSES = results.load("senses")["figures"]


def by_hand():
    w_q, w_k, _ = pointer_weights(8)
    pictures.choices(dict.fromkeys("abcd", w_q @ w_k.T))


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (pictures.course_map, "self-attention lit"),
        (
            lambda: pictures.wishes(SENTENCE, FOUND),
            "C wants A and must return -0.69; A wants C and must return 1.26; B wants A",
        ),
        (
            lambda: pictures.found("Mine", SENTENCE, torch.eye(3), FOUND),
            "C, wants A: gets −0.69; A, wants C: gets 1.26; B, wants A: gets −0.69. Weights: 1.00",
        ),
        (lambda: pictures.itself(ITSELF), "heads: mean 0.06, 6 over a half"),
        (
            lambda: pictures.example(*project(X, torch.eye(2), SWAP, DOUBLE)),
            "weights 0.198, 0.401, 0.401. They multiply the values (2, 0), (0, 1) and (2, 1)",
        ),
        (pictures.shapes, "gives n by n scores"),
        (by_hand, "a: own by own 0.00, own by wanted 0.00, wanted by own 1.00"),
        (
            lambda: pictures.senses({"ring the bell": [0.1, -0.2]}, {"ring the bell": [0.1, 0]}),
            "ring the bell: -0.20, blinded +0.00",
        ),
    ],
)
def test_a_picture_says_what_is_seen_in_it(displayed, draw, said):
    shown = displayed(draw)
    assert said in shown["text/plain"]
    assert html.escape(said) in shown["image/svg+xml"]


def test_in_most_heads_most_tokens_prefer_another_with_the_first_token_or_without():
    for name in ("itself", "without the first"):
        heads = torch.tensor(ITSELF["SmolLM2"][name]).flatten()
        assert (heads > 0.5).float().mean() < 0.15
    assert ITSELF["word vectors"]["version 1"] > 0.9


def test_one_shared_matrix_hardly_beats_the_average_and_more_steps_do_not_help():
    for steps in ("500", "2000"):
        assert all(0.16 < x < 0.17 for x in POINTERS["one shared matrix"][steps])
        assert min(POINTERS["three matrices"][steps]) > 0.99


def test_each_ring_takes_the_side_of_its_line_and_a_blinded_one_does_not():
    for line in SENSES["lines"]["ring"].values():
        assert (line["attention"][-1] > 0) == line["sense"]
        assert (line["average"] > 0) == line["sense"], "as the page says"
    blinded = [line["alone"][-1] for line in SENSES["lines"]["ring"].values()]
    assert max(blinded) - min(blinded) < 0.03


def test_in_a_line_with_both_senses_the_ring_of_the_jewel_is_nearer_to_the_jewels():
    assert len(SENSES["both"]) == 7
    assert all(line["attention"][-1] > 0 for line in SENSES["both"].values())
