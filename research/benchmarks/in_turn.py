"""Programs that take turns, so that a machine that slows down slows all of them."""

import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm


def seconds(programs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Run each program once a round; return the seconds of the processor of every round."""
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for _ in tqdm(range(rounds), desc="rounds, each in turn"):
        for name, program in programs.items():
            start = time.process_time()
            program()
            taken[name].append(time.process_time() - start)
    return taken
