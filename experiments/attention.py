"""Lesson 02: the same model with and without attention, by the length of the word."""

from torch import Tensor

from course_lib.attention import dot_scores, softmax, weighted_sum
from experiments import spelling_models
from experiments.spelling_models import LENGTHS, SETTINGS

LESSON = "02"
SEEDS = (0, 1, 2)


def attend(queries: Tensor, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each query the average of the states, weighed by their dot products with it."""
    weights = softmax(dot_scores(queries, states), mask)
    return weighted_sum(weights, states), weights


def measure() -> dict:
    """Return accuracies by length, without attention and with it."""
    return {
        "lengths": LENGTHS,
        "words": spelling_models.words_by_length(),
        "settings": SETTINGS,
        "one vector": [spelling_models.measure(seed) for seed in SEEDS],
        "attention": [spelling_models.measure(seed, attend=attend) for seed in SEEDS],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return spelling_models.rows({name: figures[name] for name in ("one vector", "attention")})
