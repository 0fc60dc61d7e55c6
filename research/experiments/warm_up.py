"""Lesson 07: post-norm, DeepNorm and pre-norm of 8 blocks, with and without warm-up, at four rates.

All begin with torch's default weights, and pre-norm has its last norm.
"""

import math
from functools import partial

from course_lib.add_norm import DeepNorm, PostNorm, PreNorm
from course_lib.instruments.deep_stack import redraw
from research.experiments import stacks

LESSON = "07"
SEEDS = (0, 1, 2)

BLOCKS, STEPS = 8, 250
WRAPS = {
    "post-norm": PostNorm,
    "DeepNorm": partial(DeepNorm, alpha=(2 * BLOCKS) ** 0.25),
    "pre-norm": PreNorm,
}
WARM_UPS = [0.0, 0.3]  # share of the steps
RATES = [0.001, 0.003, 0.01, 0.03]
SHOWN = 0.01  # the rate of which all losses are kept, and that is tried without clipping


def measure() -> dict:
    """Return held-out losses by order, warm-up, rate and seed, and the losses of one rate."""
    cases = [(name, share) for name in WRAPS for share in WARM_UPS]
    losses: dict = {name: {} for name in WRAPS}
    curves: dict = {name: {} for name in WRAPS}
    unclipped: dict = {name: {} for name in WRAPS}
    for name, share in cases:
        label = f"{share:.0%}"
        losses[name][label] = {}
        for rate in RATES:
            runs = [_run(name, share, rate, seed) for seed in SEEDS]
            losses[name][label][f"{rate:g}"] = [run["held out"] for run in runs]
            if rate == SHOWN:
                curves[name][label] = [run["losses"] for run in runs]
        runs = [_run(name, share, SHOWN, seed, clip=math.inf) for seed in SEEDS]
        unclipped[name][label] = [run["held out"] for run in runs]
        print(name, label, losses[name][label], unclipped[name][label], flush=True)
    return {
        "blocks": BLOCKS,
        "steps": STEPS,
        "rates": RATES,
        "shown": SHOWN,
        "trivial": stacks.trivial_loss(),
        "trivial in training": stacks.trivial_loss(in_training=True),
        "losses": losses,
        "curves": curves,
        "without clipping": unclipped,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for name, by_warm_up in figures["losses"].items():
        for share, by_rate in by_warm_up.items():
            rows = {**by_rate, "unclipped": figures["without clipping"][name][share]}
            for rate, runs in rows.items():
                shown = ", ".join(f"{loss:.3f}" for loss in runs)
                lines.append(f"{name:9}  warm-up {share:>3}, rate {rate:>9}: {shown}")
    return lines


def _run(name: str, warm_up: float, rate: float, seed: int, **options: float) -> dict:
    """Train one stack; return the loss of each step, and that on held-out text."""
    model = stacks.new(WRAPS[name], BLOCKS, seed)
    redraw(model, "torch's default", seed)
    budget = {"steps": STEPS, "learning_rate": rate, "warm_up": warm_up, **options}
    losses = stacks.train(model, seed, **budget)
    return {
        "losses": [round(loss, 3) for loss in losses],
        "held out": round(stacks.held_out_loss(model), 4),
    }
