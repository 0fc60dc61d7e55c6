"""Lesson 07: post-norm and pre-norm at a high learning rate, with and without warm-up."""

from course_lib.add_norm import PostNorm, PreNorm
from experiments import stacks

LESSON = "07"
SEEDS = (0, 1, 2)

BLOCKS = 8
WRAPS = {"post-norm": PostNorm, "pre-norm": PreNorm}
WARM_UPS = [0.0, 0.3]  # share of the steps
BUDGET = {"steps": 250, "learning_rate": 0.01}


def measure() -> dict:
    """Return for each order of norms, and each warm-up, one run a seed."""
    return {
        "blocks": BLOCKS,
        "settings": {**stacks.SETTINGS, **BUDGET},
        "trivial": stacks.trivial_loss(),
        "warm_ups": WARM_UPS,
        "runs": {
            name: [[_run(wrap, warm_up, seed) for seed in SEEDS] for warm_up in WARM_UPS]
            for name, wrap in WRAPS.items()
        },
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{name:9}  warm-up {warm_up:.0%}: held-out loss "
        + ", ".join(f"{run['held out']:.3f}" for run in seeds)
        for name, by_warm_up in figures["runs"].items()
        for warm_up, seeds in zip(figures["warm_ups"], by_warm_up, strict=True)
    ]


def _run(wrap, warm_up: float, seed: int) -> dict:
    """Train one stack; return the loss of each step, and that on held-out text."""
    model = stacks.new(wrap, BLOCKS, seed)
    losses = stacks.train(model, seed, warm_up=warm_up, **BUDGET)
    return {
        "losses": [round(loss, 3) for loss in losses],
        "held out": stacks.held_out_loss(model),
    }
