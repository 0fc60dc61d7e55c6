"""Lesson 04: positions added to words, or laid beside them in columns of their own."""

from course_lib.data import trees
from course_lib.instruments import training
from course_lib.instruments.position_schemes import Concatenated, Learned, Reader, naming_loss
from research.experiments.positions import SETTINGS, D, N, shares_right, texts

LESSON = "04"
SEEDS = (0, 1, 2)
SCHEMES = {"added": lambda: Learned(N, D)} | {
    f"{columns} columns": lambda columns=columns: Concatenated(N, columns)
    for columns in (4, 16, 32)
}


def measure_one(scheme: str, seed: int) -> dict[str, float]:
    """Train one reader to name the word before, in texts of N words."""
    learning, held_out, vocab = texts()
    with training.seeded(seed):
        model = Reader(SCHEMES[scheme](), vocab, D)
    training.train(
        model,
        trees.batches(learning, learning.before, N, SETTINGS["batch"], seed),
        naming_loss,
        steps=SETTINGS["steps"],
        learning_rate=SETTINGS["learning_rate"],
        seed=seed,
    )
    right, _ = shares_right(model, held_out, "before", N)
    return {"right": right, "numbers": sum(x.numel() for x in model.scheme.parameters())}


def measure() -> dict:
    """Return the shares of right answers, and what each scheme learns beside the model."""
    return {
        "words": N,
        "settings": SETTINGS,
        "before": {name: [measure_one(name, seed) for seed in SEEDS] for name in SCHEMES},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{name:12}" + "".join(f"{run['right']:7.3f}" for run in runs)
        for name, runs in figures["before"].items()
    ]
