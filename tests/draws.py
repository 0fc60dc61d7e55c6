"""Right answers under many draws: `python -m tests.draws` names each that a seed refuses.

A grade draws its seed. What one draw in fifty refuses is met by no law, since these try a few
seeds, and by somebody in each large class. Each run draws other seeds, and says where it began.
"""

import argparse
import secrets
import time
from collections.abc import Iterator
from itertools import count

from course_lib.answers.answer import InProcess
from course_lib.checking.catalogue import ids, load
from course_lib.checking.exercise import Exercise
from course_lib.checking.trial import AnswerRun


def refused(exercise: Exercise, first: int, seconds: float) -> Iterator[str]:
    """Try the reference and its alternatives in turn, each seed on one; yield what fails."""
    answers, end = (exercise.reference, *exercise.alternatives), time.process_time() + seconds
    for seed in count(first):
        if time.process_time() > end:
            break
        answer = answers[seed % len(answers)]
        run = AnswerRun(exercise, InProcess(answer), seed)
        for trial in run.all():
            if not trial.held:
                cases = ", ".join(call.case.name for call in trial.calls if not call.held)
                yield f"{exercise.id} {answer.__name__} (seed {seed}): {trial.sentence}: {cases}"


def main() -> int:
    """Print each refusal, and fail if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.draws", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="exercises; all of them by default")
    parser.add_argument("--seconds", type=float, default=4, metavar="N", help="for each exercise")
    parser.add_argument("--seed", type=int, help="the first one (drawn)")
    options = parser.parse_args()
    first = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"--seed {first}")
    told = [x for name in options.ids or ids() for x in refused(load(name), first, options.seconds)]
    print(*told, f"{len(told)} refused", sep="\n")
    return bool(told)


if __name__ == "__main__":
    raise SystemExit(main())
