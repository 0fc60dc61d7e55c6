"""Exploration 09_fast: seconds of one pass of SmolLM2 against its length, and of writing.

Processor time on one thread, the least of several passes, in several rounds.
"""

from collections.abc import Callable
from time import process_time

import torch

from course_lib.pretrained import smollm2

LESSON = "09_fast"
SEEDS = (0,)
LENGTHS, ROUNDS, TIMES = (1, 8, 36, 68, 128), 3, 5
QUESTION, NEW = "Why is the sky blue?", 32


def measure() -> dict:
    """Return the seconds of passes, of reading all weights of the blocks once, and of writing."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            return measured(smollm2.load())
    finally:
        torch.set_num_threads(threads)


def measured(model: smollm2.SmolLM2) -> dict:
    """Return all figures of a model."""
    weights = list(model.blocks.parameters())
    tokens = {n: torch.arange(1000, 1000 + n) for n in LENGTHS}
    rounds = range(ROUNDS)
    return {
        "settings": {"question": QUESTION, "new": NEW, "times": TIMES},
        "bytes": sum(4 * weight.numel() for weight in weights),
        "passes": {
            str(n): [least(lambda x=x: model.states(x), TIMES) for _ in rounds]
            for n, x in tokens.items()
        },
        "reading": [least(lambda: [weight.sum() for weight in weights], TIMES) for _ in rounds],
        "writing": {
            name: [
                least(lambda kept=kept: list(model.answer(QUESTION, NEW, kept)), 1) for _ in rounds
            ]
            for name, kept in (("with the cache", True), ("without", False))
        },
    }


def least(run: Callable[[], object], times: int) -> float:
    """Return the processor's seconds of `run()`, the least of so many times."""
    taken = []
    for _ in range(times):
        start = process_time()
        run()
        taken.append(process_time() - start)
    return round(min(taken), 4)


def line(figures: dict) -> tuple[float, float]:
    """Fit the seconds of a pass by a + b n, to the median round of each length; return (a, b)."""
    lengths = torch.tensor([float(n) for n in figures["passes"]])
    seconds = torch.tensor([sorted(x)[len(x) // 2] for x in figures["passes"].values()])
    b = ((lengths - lengths.mean()) * seconds).sum() / (lengths - lengths.mean()).square().sum()
    return (seconds.mean() - b * lengths.mean()).item(), b.item()


def table(figures: dict) -> str:
    """Return a table of the passes, and the line through them."""
    lines = ["| tokens in one pass | milliseconds, each round |", "|-:|:-|"]
    for n, rounds in figures["passes"].items():
        lines.append(f"| {n} | {', '.join(f'{1000 * x:.0f}' for x in rounds)} |")
    a, b = line(figures)
    reading = 1000 * sorted(figures["reading"])[1]
    lines.append(f"\n{1000 * a:.0f} ms + {1000 * b:.1f} ms a token; reading once: {reading:.0f} ms")
    return "\n".join(lines)
