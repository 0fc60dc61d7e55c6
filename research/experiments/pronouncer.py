"""Lesson 02: the reader of words whose weights are kept, for the site."""

from typing import Any

from course_lib.data import spelling
from course_lib.instruments import training
from course_lib.instruments.weights import save_weights
from course_lib.pretrained import pronouncer
from course_lib.seq2seq import next_token_loss
from research.experiments.spelling_models import LENGTHS, SETTINGS

LESSON = "02"
SEEDS = (0,)
STEPS, RATE = 6000, 0.01


def measure() -> dict[str, Any]:
    """Train the model and keep its weights; return its accuracy in 16 bits, by letters."""
    learning, held_out = spelling.split()
    [seed] = SEEDS
    with training.seeded(seed):
        model = pronouncer.untrained()
    batches = spelling.batches(learning, SETTINGS["batch"], seed)
    history = training.train(
        model, batches, next_token_loss, steps=STEPS, learning_rate=RATE, seed=seed
    )
    save_weights(pronouncer.NAME, model)
    return {
        "steps": history.steps,
        "learning_rate": RATE,
        "lengths": LENGTHS,
        "accuracy": spelling.accuracy_by_length(pronouncer.load(), held_out, LENGTHS),
    }


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text."""
    by_length = zip(figures["lengths"], figures["accuracy"], strict=True)
    return [f"{letters:3} letters: {share:.2f} right" for letters, share in by_length]
