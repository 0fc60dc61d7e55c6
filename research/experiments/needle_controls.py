"""Lesson 13: is it the learning rate, and what does a window lend to a global block?"""

from course_lib.instruments import results
from research.experiments import needle

LESSON = "13"
SEEDS = (0, 1, 2)

RATES = (0.002, 0.01)  # beside the 0.005 of research/experiments/needle.py
SWEPT = ("global", "random", "window + global")
FAR = 13  # beyond every window's reach in two layers: blocks of four, one on each side
WITHOUT_NEAR = ("dense", "global", "window + global")


def measure() -> dict:
    """Return runs by row and seed: at other rates, and trained on far needles alone."""
    settings = [needle.MODEL, needle.BUDGET, RATES, FAR]

    def kept(name: str, seed: int, **more) -> dict:
        key = f"{name} {seed} {more}"
        return results.once(
            "needle_controls", settings, key, lambda: needle.run(name, 1, seed, **more)
        )

    far = {name: [kept(name, seed, nearest=FAR) for seed in SEEDS] for name in WITHOUT_NEAR}
    rates = {
        name: {str(rate): [kept(name, seed, rate=rate) for seed in SEEDS] for rate in RATES}
        for name in SWEPT
    }
    return {"nearest": FAR, "far": far, "rates": rates}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = ["share found at the end, seed by seed"]
    for name, runs in figures["far"].items():
        ends = "  ".join(f"{run['curve'][-1]:.2f}" for run in runs)
        lines.append(f"{name:18} far needles alone   {ends}")
    for name, rates in figures["rates"].items():
        for rate, runs in rates.items():
            ends = "  ".join(f"{run['curve'][-1]:.2f}" for run in runs)
            lines.append(f"{name:18} rate {rate:14}  {ends}")
    return lines
