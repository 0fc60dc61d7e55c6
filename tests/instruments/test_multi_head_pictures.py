"""Lesson 06's pictures say in words what they show."""

import pytest
import torch

from course_lib.instruments import results
from course_lib.instruments.pictures import multi_head as pictures

KEPT = results.load("circuit")["figures"]
RUNS, WATCHED = KEPT["runs"], KEPT["watched"]


def test_two_heads_name_each_look_that_is_drawn(said):
    weights = torch.eye(4).roll(-1, -1).tolist()
    pictures.two_heads(["a", " b", " a"], [weights, torch.zeros(4, 4).tolist()])
    assert "“a b a”" in said[0]
    weights = torch.zeros(4, 4)
    weights[3, 2] = 0.75
    pictures.two_heads(["a", " b", " a"], [weights.tolist(), weights.tolist()])
    assert said[1].count("a at b 0.75") == 2


def test_a_head_that_is_steered_is_told_by_its_weights(said):
    whole, shifted = torch.zeros(2, 21, 21)
    whole[range(12, 21), range(3, 12)] = 0.9
    shifted[range(12, 21), range(4, 13)] = 0.8
    pictures.steered(whole, whole / 9, shifted)
    assert "0.90. While head 17.1 is silent it is 0.10" in said[0]
    assert "a bright line of 0.80 is one token further" in said[0]


# what matplotlib does with torch's tensors; in a kernel nobody sees it
@pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")
def test_the_heads_of_a_layer_are_told_by_what_they_look_at_most(said):
    weights = torch.tensor([[0.1, 0.7, 0.2], [0.0, 0.0, 1.0]])
    pictures.nine_heads("A title", ["start", "b", "a"], weights)
    assert "from the token a" in said[0]
    assert "head 1 b 0.70; head 2 a 1.00." in said[0]


def test_a_model_with_one_look_a_layer_is_told_by_its_losses(said):
    run = {"as it is": 1.0, "one look": 5.0, "mean": 7.0}
    runs = [run, {name: loss + 1 for name, loss in run.items()}]
    pictures.one_look("A title", {"list": {"runs": runs}, "sentences": {"runs": [run]}})
    assert "a list, read again, one look: 5.5;" in said[0]
    assert "sentences, mean: 7.0." in said[0]


def test_answers_on_a_line_are_told_by_their_distance(said):
    wanted = torch.randn(20, 5, 2)
    pictures.line_and_cloud(wanted, {"one": torch.zeros(20, 5, 2), "two": wanted})
    assert f"one: {wanted.norm(dim=-1).mean():.2f}; two: 0.00" in said[0]


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (pictures.mixtures, "0.40"),
        (pictures.split, "5 by 4"),
        (pictures.layer, "W_O"),
        (pictures.circuit, "before me: A"),
        (lambda: pictures.keys_and_queries(RUNS, WATCHED), "keys miss head 17.1: 0."),
        (lambda: pictures.heads_by_layer(RUNS, KEPT["previous"]), "7 are over 0.5"),
    ],
)
def test_every_picture_has_its_finding_in_words(said, draw, needed):
    draw()
    [text] = said
    assert needed in text
