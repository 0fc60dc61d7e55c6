"""Lesson 18: two other rewards where there is no baseline.

Controls of `reward`, with its questions, steps and rate: "rewarded alone" with half a reward for
the right word without an end, and with 5 added to each reward. To the advantages of a group a
constant makes no difference.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from course_lib.data.verifiable import LEARNED_KINDS, OTHER_KINDS, Question, is_right
from course_lib.instruments import answered, results
from research.experiments.reward import SETTINGS, Answers, Arm, right, tuned

LESSON = "18"
SEEDS = (0, 1, 2)
ADDED = 5.0  # to each reward
HALF = 0.5  # what the right word is worth without an end
once = partial(results.once, "reward_controls", SETTINGS)


def raised(answers: Answers, question: Question) -> list[float]:
    """Reward as `right` does, and add a constant."""
    return [reward + ADDED for reward in right(answers, question)]


def half(answers: Answers, question: Question) -> list[float]:
    """Reward the right word in an answer that comes to its end, and half as much without an end."""
    return [
        float(is_right(text, question.word)) * (1.0 if ended else HALF)
        for text, ended in zip(answers.texts, answers.ended, strict=True)
    ]


CONTROLS = {
    "rewarded alone, half paid": Arm(half, advantage=lambda rewards: rewards),
    "rewarded alone, 5 added": Arm(raised, advantage=lambda rewards: rewards),
}


def measure() -> dict[str, Any]:
    """Return what each control sees while it is trained, and what it answers afterwards."""
    torch.set_num_threads(1)
    return {
        "settings": SETTINGS | {"added": ADDED, "half": HALF},
        "arms": {
            name: [once(f"{name} {seed}", partial(tuned, arm, seed)) for seed in SEEDS]
            for name, arm in CONTROLS.items()
        },
    }


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Yield what is rewarded after each training, and in its steps."""
    yield f"{'':28}{'learned kinds':>15}{'other kinds':>13}   right in each step"
    for name, runs in figures["arms"].items():
        for run in runs:
            learned, other = (
                answered.share(run["after"], kinds) for kinds in (LEARNED_KINDS, OTHER_KINDS)
            )
            seen = " ".join(f"{step['right']:.2f}" for step in run["seen"])
            yield f"{name:28}{learned:15.1%}{other:13.1%}   {seen}"
