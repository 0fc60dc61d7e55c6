"""Lesson 02: where a network that learned from joined words looks, letter by letter.

It is the one of `long_words` with attention, all and joined, and reads that experiment's long word.
"""

from course_lib.data import spelling
from research.experiments.long_words import LONGEST, trained

LESSON = "02"
SEEDS = (0,)
READER = "attention, all and joined"


def measure() -> dict:
    """Return the sounds that it writes, and its weights, a row a sound and one for the stop."""
    model, _ = trained(READER, SEEDS[0])
    [sounds] = spelling.pronounce(model, [LONGEST])
    read = spelling.encode_sounds([sounds])[:, :-1]
    [weights] = model.weights(spelling.encode_words([LONGEST]), read)
    rows = [[round(weight, 3) for weight in row] for row in weights.tolist()]
    return {"word": LONGEST, "sounds": sounds, "weights": rows}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    letters = f"{figures['word']}·"
    looked = [letters[row.index(max(row))] for row in figures["weights"]]
    sounds = [*figures["sounds"], "stop"]
    return [f"{sound:4} {letter}" for sound, letter in zip(sounds, looked, strict=True)]
