"""Lesson 10: the three published entries of its race, run as a reader's own is.

Counting alone, nanoGPT's settings, and the last rung of experiments/language_model.py with a
narrower model, since it has 60 seconds.
"""

from dataclasses import replace

import torch

from course_lib.instruments import race
from course_lib.ngrams import NGrams
from experiments import recipes

LESSON = "10"
SEEDS = (0,)


def _encoder(text):
    vocab = {character: i for i, character in enumerate(sorted(set(text)))}
    return len(vocab), lambda text: torch.tensor([vocab[character] for character in text])


def _counting(text, seconds):
    size, encode = _encoder(text)
    counts = NGrams(encode(text), size)
    return lambda text: counts.probabilities(encode(text))


def _trained(rung):
    def learn(text, seconds):
        size, encode = _encoder(text)
        predictor, _ = recipes.train(rung, encode(text), size, seconds, seed=0)
        return lambda text: predictor(encode(text))

    return learn


ENTRIES = {
    "counting": ("counting: Kneser-Ney, six characters", _counting),
    "lesson": ("attention: nanoGPT's settings", _trained(recipes.ladder()["nanogpt"])),
    "both": (
        "both: a model that corrects the counts",
        _trained(replace(recipes.ladder()["counts"], d_model=128)),
    ),
}


def measure() -> dict[str, dict[str, float | str]]:
    """Return each entry's title, loss and seconds."""
    figures = {}
    for name, (title, learn) in ENTRIES.items():
        loss, seconds = race.measured(learn)
        figures[name] = {"title": title, "loss": round(loss, 4), "seconds": round(seconds, 1)}
    return figures


def table(figures: dict[str, dict]) -> list[str]:
    """Return a line for each entry."""
    return [f"{x['loss']:.3f}  {x['seconds']:3.0f} s  {x['title']}" for x in figures.values()]
