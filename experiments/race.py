"""Lesson 10: the three published entries of `course race`, run as a reader's own is.

Counting alone, nanoGPT's settings, and the last rung of experiments/language_model.py with a
narrower model, since it has 60 seconds.
"""

from course_lib.checking.notebook import race

LESSON = "10"
SEEDS = (0,)
TITLES = {
    "counting": "counting: Kneser-Ney, six characters",
    "lesson": "attention: nanoGPT's settings",
    "both": "both: a model that corrects the counts",
}
SHARED = """
from dataclasses import replace
import torch
from course_lib.ngrams import NGrams
from experiments import recipes

def encoder(text):
    vocab = {x: i for i, x in enumerate(sorted(set(text)))}
    return len(vocab), lambda text: torch.tensor([vocab[x] for x in text])

def trained(rung, text, seconds):
    size, encode = encoder(text)
    predictor, _ = recipes.train(rung, encode(text), size, seconds, seed=0)
    return lambda text: predictor(encode(text))
"""
ENTRIES = {
    "counting": """
def learn(text, seconds):
    size, encode = encoder(text)
    counts = NGrams(encode(text), size)
    return lambda text: counts.probabilities(encode(text))
""",
    "lesson": """
def learn(text, seconds):
    return trained(recipes.ladder()["nanogpt"], text, seconds)
""",
    "both": """
def learn(text, seconds):
    rung = replace(recipes.ladder()["counts"], d_model=128)
    return trained(rung, text, seconds)
""",
}


def measure_one(name: str) -> dict[str, float | str]:
    """Run one entry; return its title, its loss and its seconds."""
    with race.Runner(race.GRACE * race.SECONDS) as runner:
        outcome = race.run(race.Entry(SHARED + ENTRIES[name]), *race.texts(), runner)
    seconds = round(outcome.seconds, 1)
    return {"title": TITLES[name], "loss": round(outcome.loss, 4), "seconds": seconds}


def measure() -> dict[str, dict[str, float | str]]:
    """Return each entry's title, loss and seconds."""
    return {name: measure_one(name) for name in ENTRIES}


def table(figures: dict[str, dict]) -> list[str]:
    """Return a line for each entry."""
    return [f"{x['loss']:.3f}  {x['seconds']:3.0f} s  {x['title']}" for x in figures.values()]
