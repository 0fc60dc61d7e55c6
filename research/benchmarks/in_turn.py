"""Programs that take turns, so that a machine that slows down slows all of them.

Who is ahead depends on the processor, whose kernels a program has or has not: figures are kept by
processor, and a run replaces those of its own.
"""

import contextlib
import re
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from tqdm import tqdm

from course_lib.instruments import results


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


def keep(name: str, figures: dict[str, Any], *, command: str, seconds: float) -> None:
    """Keep the figures in research/results/NAME.json, beside those of other processors."""
    kept = {}
    with contextlib.suppress(FileNotFoundError):
        kept = results.load(name)["figures"]
    own = re.sub(r"\(R\)| Processor", "", results.processor())
    results.save(name, kept | {own: figures}, command=command, seeds=[0], seconds=seconds)


def table(head: str, columns: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """Return a table: a row a program, and of each processor the columns that it has.

    `columns` are, by processor and by heading, the cells of the programs.
    """
    titles = [f"{x}, {processor}" for processor, own in columns.items() for x in own]
    cells = [x for own in columns.values() for x in own.values()]
    rows = dict.fromkeys(name for x in cells for name in x)
    lines = [f"| {head} | {' | '.join(titles)} |", "|:-|" + "-:|" * len(titles)]
    lines += [f"| {row} | {' | '.join(x.get(row, '–') for x in cells)} |" for row in rows]
    return "\n".join(lines)
