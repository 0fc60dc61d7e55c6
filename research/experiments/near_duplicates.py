"""Lesson 11: does our translator win by its near-duplicates? The same training without them.

Beside it, as a control, the same training without equally many other texts, drawn at random.
"""

import random
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from course_lib.data import home_assistant
from course_lib.data.home_assistant import normalised
from course_lib.instruments import results
from research.experiments import translation

LESSON = "11"
SEEDS = (0,)

RECIPE = translation.CANDIDATES["a larger model"]  # of the translator that the lesson has
ALPHA = 1.5  # its length penalty


def near() -> set[int]:
    """Return the learning pairs whose English is a held-out one's, but for one replaced word."""
    learning, _, held_out = home_assistant.split("pt")
    asked = {gap for source, _ in held_out for gap in _gaps(source)}
    return {i for i, (source, _) in enumerate(learning) if not asked.isdisjoint(_gaps(source))}


def _gaps(text: str) -> list[tuple[str, ...]]:
    words = normalised(text).split()
    return [(*words[:i], "", *words[i + 1 :]) for i in range(len(words))]


def parts() -> dict[str, list[int]]:
    """Return the pairs that each training has."""
    count, close = len(home_assistant.split("pt").learning), near()
    others = sorted(set(range(count)) - close)
    drawn = set(random.Random(0).sample(others, len(close)))
    return {
        "without neighbours": others,
        "without as many others": [i for i in range(count) if i not in drawn],
    }


def write(part: Sequence[int], seed: int) -> dict:
    """Train on a part; return what it took, and the translations of the held-out texts."""
    model, pieces, took = translation.train(RECIPE, seed, part)
    model.half().float()  # the lesson's translator is kept in 16 bits
    sources, references = zip(*home_assistant.split("pt").held_out, strict=True)
    written = translation._by_beam(model, pieces, list(sources), ALPHA)
    return took | translation.scores(written, references) | {"written": written}


def measure() -> dict:
    """Return the translations of both trainings."""
    given = parts()
    settings = {"recipe": asdict(RECIPE), "pairs": {name: len(x) for name, x in given.items()}}
    once = partial(results.once, "near_duplicates", settings)
    return {
        "left out": len(near()),
        "settings": settings,
        "runs": {
            name: {str(seed): once(f"{name}, {seed}", partial(write, part, seed)) for seed in SEEDS}
            for name, part in given.items()
        },
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{name:24} {len(found['written'])} texts, BLEU {found['bleu']:.1f}"
        for name, runs in figures["runs"].items()
        for found in runs.values()
    ]
