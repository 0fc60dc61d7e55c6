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
from research.experiments import senses

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
        (
            lambda: pictures.example(*project(X, torch.eye(2), SWAP, DOUBLE)),
            "weights 0.198, 0.401, 0.401. They multiply the values (2, 0), (0, 1) and (2, 1)",
        ),
        (pictures.shapes, "gives n by n scores"),
        (by_hand, "a: own by own 0.00, own by wanted 0.00, wanted by own 1.00"),
        (
            lambda: pictures.senses({"guess": [[0.1, -0.2], [0, 0.3]]}, {"guess": [0.1, 0]}),
            "guess: 3 of 4 pairs of lines, 1 of 2 lines with both",
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
        assert all(0.43 < x < 0.45 for x in POINTERS["shared, and the token itself"][steps])


def test_of_four_words_attention_alone_finds_far_clues_and_tells_two_of_one_line_apart():
    found = {kind: senses.sums(SENSES, kind) for kind in SENSES["leans"]["ring"]["one sense"]}
    far = {kind: share for kind, (share, _) in found.items()}
    both = {kind: count for kind, (_, count) in found.items()}
    assert both == dict(zip(far, (28, 17, 30, 0), strict=True))
    bounds = (0.99, 1), (0.4, 0.6), (0.6, 0.7), (0.95, 0.97)
    for kind, (low, high) in zip(far, bounds, strict=True):
        assert low < far[kind] < high, kind


def test_attention_has_every_ring_in_order():
    ring = SENSES["leans"]["ring"]
    assert senses.pairs(ring["one sense"]["attention"]) == 1
    assert min(ring["both"]["attention"]) > 0


def test_a_ring_that_sees_itself_alone_is_in_order_as_by_chance():
    ring = SENSES["leans"]["ring"]
    assert 0.4 < senses.pairs(ring["one sense"]["itself alone"]) < 0.6
    assert sum(gap > 0 for gap in ring["both"]["itself alone"]) in (3, 4, 5)
