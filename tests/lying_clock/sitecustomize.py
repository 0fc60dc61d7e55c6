"""Let the clocks of a notebook's kernel lie: no lesson may fail for how long something took.

Python imports this by its name from a folder of PYTHONPATH (`tests/__main__.py`).
"""

import random
import sys
import time
from collections.abc import Callable
from itertools import accumulate, repeat


def lying(seed: int) -> Callable[[], float]:
    """Return a clock that never goes back, and goes on by a microsecond or a quarter of an hour."""
    draw = random.Random(seed)
    readings = accumulate(10 ** draw.uniform(-6, 3) for _ in repeat(None))
    return lambda: next(readings)


if "ipykernel_launcher" in sys.orig_argv:
    time.perf_counter, time.process_time = lying(1), lying(2)
