"""Lesson 12: other sizes at the budget that no fit has seen, which score a choice of size."""

from functools import partial

from course_lib.instruments import results
from research.experiments.scaling import LARGER, SETTINGS, run

LESSON = "12"
SEEDS = (0,)
RATES = {96: (0.0025, 0.005), 64: (0.005,), 32: (0.01,)}  # d_model -> learning rates


def measure() -> dict:
    """Return each size at its best rate; `research.experiments.scaling` has the chosen size."""
    once = partial(results.once, "fourth_budget", SETTINGS)
    search = [
        once(f"{d} {rate}", partial(run, LARGER, d, rate, seed))
        for d, rates in RATES.items()
        for rate in rates
        for seed in SEEDS
    ]
    rows = [min((x for x in search if x["d"] == d), key=lambda x: x["loss"]) for d in RATES]
    return {"rows": rows, "search": search}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"d = {row['d']:3}, N = {row['parameters']:7,}, D = {row['tokens']:10,}, "
        f"rate {row['rate']:.4f}, seed {row['seed']}: {row['loss']:.3f}"
        for row in figures["rows"]
    ]
