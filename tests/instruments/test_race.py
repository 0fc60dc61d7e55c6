"""A race measures what a model has learned, and says in one sentence why it cannot."""

import math

import pytest
import torch

from course_lib.data import shakespeare
from course_lib.instruments import race
from course_lib.ngrams import NGrams

LEARNED = "the cat sat on the mat. " * 40
HELD_OUT = "the mat sat on the cat. " * 25
VOCAB = sorted(set(LEARNED))
SIZE = len(VOCAB)


def loss(predict):
    return race.held_out_loss(predict, VOCAB, HELD_OUT)


def uniform(text):
    return torch.full((len(text), SIZE), 1 / SIZE)


def counting(text, seconds):
    def encode(text):
        return torch.tensor([VOCAB.index(character) for character in text])

    counts = NGrams(encode(text), SIZE, 4)
    return lambda text: counts.probabilities(encode(text))


def test_equal_probabilities_have_the_loss_log_vocab():
    assert math.isclose(loss(uniform), math.log(SIZE), rel_tol=1e-6)


def test_a_better_model_has_a_lower_loss():
    assert loss(counting(LEARNED, 1)) < 1


def test_stretches_with_unknown_characters_are_left_out():
    assert loss(uniform) == race.held_out_loss(uniform, VOCAB, HELD_OUT + "é" + HELD_OUT[-200:])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda text: torch.eye(SIZE), "but got the shape"),
        (lambda text: torch.ones(len(text), SIZE), "each row with the sum 1"),
        (lambda text: 1 / SIZE + torch.eye(len(text), SIZE) - torch.eye(len(text), SIZE).roll(1, 1),
         "are these logits"),
        (lambda text: torch.full((len(text), SIZE), math.nan), "see the future|probabilities"),
        (lambda text: torch.eye(SIZE)[[VOCAB.index(text[-1])] * len(text)], "see the future"),
    ],
    ids=["shape", "sum", "negative", "NaN", "future"],
)  # fmt: skip
def test_what_are_no_causal_probabilities_is_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        loss(rows)


def test_the_race_prints_the_loss_beside_the_published_ones(monkeypatch, capsys):
    monkeypatch.setattr(shakespeare, "complete_works", lambda: LEARNED + HELD_OUT)
    monkeypatch.setattr(race, "HELD_OUT", len(HELD_OUT) / len(LEARNED + HELD_OUT))
    race.run(counting)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].endswith("yours, now")
