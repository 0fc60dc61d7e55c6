"""Questions whose answers a program can judge: kinds to learn from, and kinds that nobody learns.

Lists are short and drawn by a seed. What is learned and what is tested have no question in common.
"""

import random
import re
from typing import NamedTuple

from course_lib.data.questions import CAPITALS, FACTS, NUMBERS, OPPOSITES

PLURALS = {
    "mouse": "mice", "foot": "feet", "tooth": "teeth", "child": "children", "man": "men",
    "woman": "women", "goose": "geese", "leaf": "leaves", "wolf": "wolves", "city": "cities",
    "baby": "babies", "box": "boxes", "knife": "knives", "bus": "buses", "sheep": "sheep",
    "potato": "potatoes",
}  # fmt: skip
LEARNED_KINDS = ("capitals", "opposites", "plurals")
OTHER_KINDS = ("facts", "sums")  # of which no question is ever learned
KINDS = LEARNED_KINDS + OTHER_KINDS


class Question(NamedTuple):
    """A question of a kind, and its right word."""

    kind: str
    asked: str
    word: str


def questions() -> list[Question]:
    """Return all questions, kind by kind."""
    sums = {f"What is {a} plus {b}?": str(a + b) for a in range(2, 10) for b in range(2, a)}
    asked = {
        "capitals": {f"What is the capital of {x}?": word for x, word in CAPITALS.items()},
        "opposites": {f"What is the opposite of {x}?": word for x, word in OPPOSITES.items()},
        "plurals": {f"What is the plural of {x}?": word for x, word in PLURALS.items()},
        "facts": FACTS,
        "sums": sums,
    }
    return [Question(kind, *pair) for kind, some in asked.items() for pair in some.items()]


def split(tested: int, seed: int) -> tuple[list[Question], list[Question]]:
    """Draw `tested` questions of each kind to test with; the rest of three kinds is to learn from.

    Returns (learning, testing).
    """
    draw, learning, testing = random.Random(seed), [], []
    for kind in KINDS:
        own = [x for x in questions() if x.kind == kind]
        draw.shuffle(own)
        testing += own[:tested]
        learning += own[tested:] if kind in LEARNED_KINDS else []
    return learning, testing


def is_right(answer: str, word: str) -> bool:
    """Return True if an answer names the right word, or its number, as a word of its own."""
    words = "|".join(re.escape(x) for x in (word, NUMBERS.get(word, word)))
    return re.search(rf"(?<!\w)({words})(?!\w)", answer, re.IGNORECASE) is not None
