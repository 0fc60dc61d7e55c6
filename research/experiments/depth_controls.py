"""Lesson 07: controls at 32 blocks, which change one thing each.

Residual connections alone get the last norm that pre-norm has, from the large initial weights and
at the rates of `depth`. Post-norm, as the page trains it, gets a lower rate and a longer warm-up
from torch's weights, and small initial weights at two rates; and more steps, with either warm-up.
Pre-norm from the large weights gets as many.
"""

from functools import partial

from course_lib.add_norm import PostNorm, PreNorm
from course_lib.instruments import results
from course_lib.instruments.deep_stack import Residual, redraw
from research.experiments import depth, stacks

LESSON = "07"
SEEDS = (0, 1)

BLOCKS = 32
LARGE, DEFAULT, SMALL = "N(0, 1/fan-in)", "torch's default", "N(0, 0.02²)"
POST_STEPS = 90
# rates, and shares of the steps that are warm-up
POST = {DEFAULT: ((0.001, 0.003), (0.05, 0.3)), SMALL: ((0.003, 0.01), (0.05,))}
# post-norm from torch's weights, trained for longer: steps, rate, and seeds by warm-up's share
PATIENT_STEPS, PATIENT_RATE = 1000, 0.001
PATIENT = {0.05: (0, 1, 2), 0.3: (0, 1)}
PRE_RATE, PRE_SEEDS = 0.003, (0, 1, 2)  # of pre-norm, from the large weights, for as long
once = partial(results.once, "depth_controls", [depth.STEPS, POST_STEPS])


def measure() -> dict:
    """Return held-out losses by rate, for post-norm by warm-up too; None where one overflows."""
    last = {
        f"{rate:g}": [
            once(f"last norm {rate} {seed}", partial(_residual, rate, seed)) for seed in SEEDS
        ]
        for rate in depth.RATES
    }
    post = {
        start: {
            f"{rate:g}": {f"{share:.0%}": _posts(start, rate, share) for share in shares}
            for rate in rates
        }
        for start, (rates, shares) in POST.items()
    }
    return {
        "trivial": stacks.trivial_loss(),
        "residual and last norm": last,
        "post-norm": post,
        "post-norm's steps": POST_STEPS,
        "patient post-norm": {
            f"{share:.0%}": [
                once(f"patient {share} {seed}", partial(_patient, share, seed)) for seed in seeds
            ]
            for share, seeds in PATIENT.items()
        },
        "patient pre-norm": [
            once(f"patient pre-norm {seed}", partial(_pre, seed)) for seed in PRE_SEEDS
        ],
        "patient steps": PATIENT_STEPS,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [
        f"residual and last norm, {LARGE}, rate {rate}: {runs}"
        for rate, runs in figures["residual and last norm"].items()
    ]
    for start, by_rate in figures["post-norm"].items():
        for rate, by_share in by_rate.items():
            lines += [
                f"post-norm, {start}, rate {rate}, warm-up {share}: {runs}"
                for share, runs in by_share.items()
            ]
    lines += [
        f"post-norm, {figures['patient steps']} steps, {DEFAULT}, rate {PATIENT_RATE}, "
        f"warm-up {share}: {runs}"
        for share, runs in figures["patient post-norm"].items()
    ]
    return [
        *lines,
        f"pre-norm, {figures['patient steps']} steps, {LARGE}, rate {PRE_RATE}: "
        f"{figures['patient pre-norm']}",
    ]


def _residual(rate: float, seed: int) -> float | None:
    model = redraw(stacks.new(Residual, BLOCKS, seed, last_norm=True), LARGE, seed)
    try:
        stacks.train(model, seed, steps=depth.STEPS, learning_rate=rate)
    except FloatingPointError:
        return None
    return round(stacks.held_out_loss(model), 4)


def _posts(start: str, rate: float, share: float) -> list[float]:
    key = "post" if start == DEFAULT else f"post {start}"
    return [
        once(f"{key} {rate} {share} {seed}", partial(_post, start, rate, share, seed))
        for seed in SEEDS
    ]


def _pre(seed: int) -> float:
    model = redraw(stacks.new(PreNorm, BLOCKS, seed), LARGE, seed)
    stacks.train(model, seed, steps=PATIENT_STEPS, learning_rate=PRE_RATE)
    return round(stacks.held_out_loss(model), 4)


def _patient(share: float, seed: int) -> float:
    return _post(DEFAULT, PATIENT_RATE, share, seed, PATIENT_STEPS)


def _post(start: str, rate: float, share: float, seed: int, steps: int = POST_STEPS) -> float:
    model = redraw(stacks.new(PostNorm, BLOCKS, seed), start, seed)
    stacks.train(model, seed, steps=steps, learning_rate=rate, warm_up=share)
    return round(stacks.held_out_loss(model), 4)
