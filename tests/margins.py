"""How near any verdict is to the other one: `python -m tests.margins` prints the ten nearest.

The laws hold every wrong answer at a hundred tolerances from the right one, and every right one
within half of one (`NEAR` and `FAR`): another processor's rounding then turns no verdict round.
"""

import argparse
from collections.abc import Iterator

from course_lib.answers.answer import InProcess
from course_lib.checking.catalogue import ids, load
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain.known_mistakes import try_mistake
from course_lib.checking.laws.laws import FAR, NEAR, farthest, made_by_machine
from course_lib.checking.trial import AnswerRun

TOLD = 10
ENOUGH = 100 * FAR  # nobody needs to know more


def wrong(exercise: Exercise, seed: int) -> Iterator[tuple[float, str]]:
    """Yield how far each wrong answer is from the right one, as far as `ENOUGH`, and its name."""
    for mistake in exercise.mistakes:
        yield farthest(try_mistake(exercise, mistake, seed), ENOUGH), mistake.name
    for name, tried in made_by_machine(exercise, seed):
        if name not in exercise.equivalent:
            yield farthest(tried, ENOUGH), name


def right(exercise: Exercise, seed: int) -> Iterator[tuple[float, str]]:
    """Yield how far each alternative is from the reference, and its name."""
    for answer in exercise.alternatives:
        tried = AnswerRun(exercise, InProcess(answer), seed)
        yield farthest(tried), answer.__name__


def main() -> int:
    """Print the nearest answers of both kinds, and fail if one is too near."""
    parser = argparse.ArgumentParser(prog="python -m tests.margins", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="exercises; all of them by default")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="inputs drawn N times")
    options = parser.parse_args()
    every = [(load(x), seed) for x in options.ids or ids() for seed in range(options.seeds)]
    limits = {"wrong": (wrong, 1, FAR), "right": (right, -1, NEAR)}
    failed = False
    for kind, (answers, sign, limit) in limits.items():
        found = sorted(
            ((far, x.id, name, seed) for x, seed in every for far, name in answers(x, seed)),
            key=lambda row: sign * row[0],
        )
        print(f"{len(found)} {kind} answers, limit {limit:g} tolerances; the nearest:")
        for far, exercise_id, name, seed in found[:TOLD]:
            print(f"  {far:9.3g}  {exercise_id:32} {name} (seed {seed})")
        failed |= any(sign * far < sign * limit for far, *_ in found[:1])
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
