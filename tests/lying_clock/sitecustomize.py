"""Let the clocks lie to a notebook's cells: no lesson may fail for how long something took.

Python imports this by its name from a folder of PYTHONPATH (`tests/__main__.py`).
"""

import random
import sys
import time
from collections.abc import Callable

LIED_TO = ("__main__", "course_lib.instruments.measuring")  # cells, and what measures for them


def lying(clock: Callable[[], float], seed: int) -> Callable[[], float]:
    """Return a clock that goes ahead at each reading of a cell's, by up to a quarter of an hour.

    For all others, such as the time limit of `check`, it is the clock itself.
    """
    draw, ahead = random.Random(seed), 0.0

    def read() -> float:
        nonlocal ahead
        if sys._getframe(1).f_globals.get("__name__") not in LIED_TO:
            return clock()
        ahead += 10 ** draw.uniform(-6, 3)
        return clock() + ahead

    return read


if {"ipykernel_launcher", "tests.fork_server"} & {*sys.orig_argv}:
    time.perf_counter = lying(time.perf_counter, seed=1)
    time.process_time = lying(time.process_time, seed=2)
