"""How long a verdict takes in a warm process, and what importing the course costs.

python -m research.benchmarks.verdicts
"""

import statistics
import subprocess
import sys
import time

from course_lib.answers.answer import InProcess
from course_lib.checking import catalogue
from course_lib.checking.verdict import judge

ROUNDS = 20


def milliseconds(exercise_id: str) -> float:
    """Return the median time of a verdict on the reference, after one that warms up."""
    exercise, times = catalogue.load(exercise_id), []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        judge(exercise, InProcess(exercise.reference))
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def import_seconds() -> float:
    """Return what course_lib and its exercises take to import beyond torch and matplotlib."""
    code = (
        "import torch, matplotlib.pyplot, time; t = time.perf_counter(); "
        "import course_lib.exercises; print(time.perf_counter() - t)"
    )
    runs = [subprocess.check_output([sys.executable, "-c", code]) for _ in range(5)]
    return statistics.median(map(float, runs))


def main() -> None:
    """Print a line an exercise, the median over all of them, and the cost of importing."""
    times = {exercise_id: milliseconds(exercise_id) for exercise_id in catalogue.ids()}
    for exercise_id, time_taken in times.items():
        print(f"{exercise_id:35} {time_taken:6.1f} ms")
    print(f"{'median verdict':35} {statistics.median(times.values()):6.1f} ms")
    print(f"{'import, beyond torch and matplotlib':35} {1000 * import_seconds():6.1f} ms")


if __name__ == "__main__":
    main()
