"""Lesson 15: a key and its value are two tokens. Which two layers join them, and recall?

Every model has two blocks and keys of 2 dimensions. The hybrid takes the first learning rate; the
first seed chooses the best of three for the others.
"""

from functools import partial
from typing import Any

import torch
from torch import nn

from course_lib.instruments import results, training, two_tokens
from course_lib.instruments.associations import D_MODEL, Layer
from research.experiments import one_equation

LESSON = "15"
SEEDS = (0, 1, 2)

STEPS, RATES = 400, (0.005, 0.01, 0.0025)
HYBRID = ("delta rule", "attention")
BATCH, D_K = 32, 2
ARMS = (
    HYBRID,
    # as deep, but no memory beside the attention
    ("own token", "attention"),
    ("delta rule", "delta rule"),
    # what joins and looks up where both layers may see everything
    ("attention", "attention"),
)
SETTINGS = {
    "steps": STEPS,
    "rates": RATES,
    "keys": two_tokens.KEYS,
    "values": two_tokens.VALUES,
    "writes": two_tokens.WRITES,
    "questions": two_tokens.QUESTIONS,
    "d_model": D_MODEL,
    "d_k": D_K,
    "batch": BATCH,
}
once = partial(results.once, "two_tokens", SETTINGS)  # what an ended run has measured is kept


def measure() -> dict:
    """Return the share of rewritten keys recalled, by layers and seed."""
    torch.set_num_threads(1)
    arms = [measure_arm(layers) for layers in ARMS]
    return {"settings": SETTINGS, "last": two_tokens.last_value(), "arms": arms}


def measure_arm(layers: tuple[str, ...]) -> dict[str, Any]:
    """Choose a learning rate by one seed, and train with it for all seeds."""

    def recalled(rate: float, seed: int) -> float:
        key = f"{' + '.join(layers)}, {rate}, seed {seed}"
        return once(key, partial(run, layers, rate, seed))

    rates = RATES[:1] if layers == HYBRID else RATES
    swept = {rate: recalled(rate, SEEDS[0]) for rate in rates}
    best = max(swept, key=swept.__getitem__)
    return {
        "layers": layers,
        "swept": {str(rate): share for rate, share in swept.items()},
        "rate": best,
        "recalled": [recalled(best, seed) for seed in SEEDS],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for arm in figures["arms"]:
        swept = ", ".join(f"{rate}: {share:.1%}" for rate, share in arm["swept"].items())
        shares = " ".join(f"{share:6.1%}" for share in arm["recalled"])
        lines.append(f"{' + '.join(arm['layers']):24} {shares} ({swept})")
    return lines


def run(layers: tuple[str, ...], rate: float, seed: int) -> float:
    """Train a reader; return the share of questions about rewritten keys that it answers right."""
    with training.seeded(seed):
        model = two_tokens.Reader([layer(name) for name in layers], D_K)
    batches, loss = two_tokens.texts(BATCH, seed), two_tokens.loss
    training.train(model, batches, loss, steps=STEPS, learning_rate=rate, seed=seed)
    share = two_tokens.recalled(model)
    print(f"{layers}, rate {rate}, seed {seed}: {share:.3f}", flush=True)
    return share


def layer(name: str) -> Layer:
    """Return what makes a layer of this name."""
    if name == "own token":
        return lambda d_k: nn.Linear(D_MODEL, D_MODEL)
    return one_equation.layer(name)
