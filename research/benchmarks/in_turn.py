"""Programs that take turns, so that a machine that slows down slows all of them."""

import statistics
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


def quartiles(rounds: dict[str, list[float]], of: str) -> dict[str, list[float]]:
    """Return how many times as long as the program `of` each one took, by rounds: the quartiles."""
    pairs = {name: zip(x, rounds[of], strict=True) for name, x in rounds.items()}
    shares = {name: [a / b for a, b in x] for name, x in pairs.items()}
    return {name: statistics.quantiles(x, n=4, method="inclusive") for name, x in shares.items()}


def shown(quartiles_of_one: list[float]) -> str:
    """Return the median, and the middle half of the rounds."""
    low, middle, high = quartiles_of_one
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"
