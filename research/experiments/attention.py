"""Lesson 02: one model without attention and with it, for each score and for both decoders."""

from statistics import mean
from typing import Any, cast

import torch
from torch import Tensor, nn

from course_lib.attention import additive_scores, attend, bilinear_scores, softmax, weighted_sum
from course_lib.data import spelling
from course_lib.seq2seq import BahdanauSeq2Seq, Seq2Seq
from research.experiments import spelling_models
from research.experiments.spelling_models import LENGTHS, SETTINGS

LESSON = "02"
SEEDS = (0, 1, 2)
D_HIDDEN = SETTINGS["d_hidden"]
WIDER = 68  # numbers of the one vector's states: as many parameters as with attention


class Scored(nn.Module):
    """Attention whose score has parameters: each begins uniform, within 1 / sqrt(d) of 0."""

    def __init__(self, shapes: list[tuple[int, ...]]):
        super().__init__()
        bound = D_HIDDEN**-0.5
        drawn = (torch.empty(shape).uniform_(-bound, bound) for shape in shapes)
        self.parts = nn.ParameterList(drawn)

    def scores(self, queries: Tensor, states: Tensor) -> Tensor:
        """Score each query against each state."""
        raise NotImplementedError

    def forward(self, queries: Tensor, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return contexts and weights."""
        weights = softmax(self.scores(queries, states), mask)
        return weighted_sum(weights, states), weights


class Bilinear(Scored):
    """Attention by q W k."""

    def __init__(self):
        super().__init__([(D_HIDDEN, D_HIDDEN)])

    def scores(self, queries: Tensor, states: Tensor) -> Tensor:
        """Score each query against each state."""
        return bilinear_scores(queries, states, *self.parts)


class Additive(Scored):
    """Attention by v . tanh(q W_q + k W_k), as wide inside as the states are."""

    def __init__(self):
        super().__init__([(D_HIDDEN, D_HIDDEN), (D_HIDDEN, D_HIDDEN), (D_HIDDEN,)])

    def scores(self, queries: Tensor, states: Tensor) -> Tensor:
        """Score each query against each state."""
        return additive_scores(queries, states, *self.parts)


def alike(queries: Tensor, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the plain average of the states that may be seen: the control, without a choice."""
    weights = softmax(queries.new_zeros(*queries.shape[:2], states.shape[1]), mask)
    return weighted_sum(weights, states), weights


class Walk(nn.Module):
    """Weights that are learned for each step and place, and see neither query nor key.

    They begin as a walk from left to right, a letter a step. `step` counts where the decoder
    writes one token at a time.
    """

    def __init__(self):
        super().__init__()
        steps, letters = torch.arange(spelling.LONGEST + 2.0), torch.arange(40.0)
        self.scores = nn.Parameter(-((letters - steps[:, None]) ** 2) / 2)
        self.step = 0

    def forward(self, queries: Tensor, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return contexts and weights."""
        first = self.step if queries.shape[1] == 1 else 0
        self.step += 1
        scores = self.scores[first : first + queries.shape[1], : states.shape[1]]
        weights = softmax(scores.expand(len(states), -1, -1), mask)
        return weighted_sum(weights, states), weights


class Walker(Seq2Seq):
    """An encoder-decoder whose attention is a `Walk`."""

    def decode(self, source: Tensor, max_new_tokens: int) -> Tensor:
        """Write greedily, from the walk's first step."""
        cast(Walk, self.attend).step = 0
        return super().decode(source, max_new_tokens)


# what `spelling_models.trained` is asked for; a score with parameters is made for each seed
ARMS = {
    "one vector": lambda: {},
    "one vector, wider": lambda: {"d_hidden": WIDER},
    "all letters alike": lambda: {"attend": alike},
    "a fixed walk": lambda: {"attend": Walk(), "kind": Walker},
    "attention": lambda: {"attend": attend},
    "bilinear": lambda: {"attend": Bilinear()},
    "additive": lambda: {"attend": Additive()},
    "Bahdanau's decoder": lambda: {"attend": attend, "kind": BahdanauSeq2Seq},
}


def measure() -> dict:
    """Return for each arm, and each seed, the accuracy by length, speed and parameters."""
    runs: dict[str, Any] = {
        name: [spelling_models.measure(seed, arm) for seed in SEEDS] for name, arm in ARMS.items()
    }
    words = spelling_models.words_by_length()
    return {"lengths": LENGTHS, "words": words, "settings": SETTINGS} | runs


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return spelling_models.rows({name: figures[name] for name in ARMS})


def on_page(figures: dict) -> str:
    """Return the table of docs/RESULTS.md: accuracy by length, with attention and without."""
    lengths = (4, 6, 8, 10, 12)
    lines = [f"| letters | {' | '.join(map(str, lengths))} |", "|:-|-:|-:|-:|-:|-:|"]
    for name in ("one vector", "attention"):
        by_length = zip(*(run["accuracy"] for run in figures[name]), strict=True)
        shares = dict(zip(figures["lengths"], map(mean, by_length), strict=True))
        lines.append(f"| {name} | {' | '.join(f'{shares[n]:.2f}' for n in lengths)} |")
    return "\n".join(lines)
