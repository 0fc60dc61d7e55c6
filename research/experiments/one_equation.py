"""Lesson 15: which memories recall a key's newest value, after how many steps, in which layers?

Each point is a training of its own, whose learning rate falls to 0 at its end.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.beyond import matrix_memory_at_once
from course_lib.instruments import associations, results, training
from course_lib.instruments.associations import D_MODEL, Attention, Layer, Reader

LESSON = "15"
SEEDS = (0, 1)

STEPS = (150, 300, 1200)
SWEPT_AT = 300  # steps, by the first seed
FIRST_RATE = 0.005  # halved and doubled until both neighbours of the best are worse
BATCH = 32

BY_STEPS = [((row, row), 8, STEPS) for row in ("delta rule", "linear attention")]
BY_LAYERS = [
    (("delta rule", "delta rule"), 2, (300, 1200)),
    (("delta rule", "attention"), 2, (300,)),
    (("attention", "attention"), 2, (300,)),
    # as deep as the two above, but no memory beside the attention
    (("own token", "attention"), 2, (300,)),
]

SETTINGS = {
    "steps": STEPS,
    "swept at": SWEPT_AT,
    "first rate": FIRST_RATE,
    "keys": associations.KEYS,
    "values": associations.VALUES,
    "writes": associations.WRITES,
    "questions": associations.QUESTIONS,
    "d_model": D_MODEL,
    "batch": BATCH,
}
once = partial(results.once, "one_equation", SETTINGS)  # what an ended run has measured is kept


class Memory(Attention):
    """One head of a matrix memory: a row of the table says how it decays, erases and writes."""

    def __init__(self, d_k: int, row: str):
        super().__init__(d_k)
        self.row, self.share = row, nn.Linear(D_MODEL, 2)
        # a memory that decays begins by keeping 0.95 at each token
        nn.init.constant_(self.share.bias, 0.0)
        with torch.no_grad():
            self.share.bias[0] = 3.0

    def forward(self, x: Tensor) -> Tensor:
        """Let each token change the state, and read it."""
        q, k = (F.normalize(F.silu(part(x)), dim=-1) for part in (self.q, self.k))
        gates = self.share(x).sigmoid()
        kept, beta, one = gates[..., 0], gates[..., 1], torch.ones_like(gates[..., 0])
        decay, erase, write = {
            "decaying average": (kept, 0 * one, 1 - kept),
            "linear attention": (one, 0 * one, one),
            "RetNet": (31 / 32 * one, 0 * one, one),
            "Mamba-2": (kept, 0 * one, -kept.log()),
            "delta rule": (one, beta, beta),
            "gated delta rule": (kept, beta, beta),
        }[self.row]
        return self.out(matrix_memory_at_once(q, k, self.v(x), decay, erase, write))


class OwnToken(nn.Module):
    """Values and outputs without any mixing: each token sees itself alone."""

    def __init__(self, d_k: int):
        super().__init__()
        self.v, self.out = (nn.Linear(D_MODEL, D_MODEL) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """Return what attention would if each token saw nobody else."""
        return self.out(self.v(x))


def measure() -> dict:
    """Return the share of rewritten keys recalled, by layers, size of a key, steps and seed."""
    arms = [measure_arm(*arm) for arm in BY_STEPS + BY_LAYERS]
    return {"settings": SETTINGS, "last": associations.last_value(), "arms": arms}


def measure_arm(layers: tuple[str, ...], d_k: int, lengths: tuple[int, ...]) -> dict[str, Any]:
    """Choose a learning rate by one seed, and train with it for so many steps and all seeds."""

    def recalled(steps: int, rate: float, seed: int) -> float:
        key = f"{' + '.join(layers)}, {d_k}, {steps} steps, {rate}, seed {seed}"
        return once(key, partial(run, layers, d_k, steps, rate, seed))

    swept, best = {}, FIRST_RATE
    while missing := [rate for rate in (best, best / 2, 2 * best) if rate not in swept]:
        swept |= {rate: recalled(SWEPT_AT, rate, SEEDS[0]) for rate in missing}
        best = max(swept, key=swept.__getitem__)
    return {
        "layers": layers,
        "d_k": d_k,
        "swept": {str(rate): share for rate, share in swept.items()},
        "rate": best,
        "recalled": {str(n): [recalled(n, best, seed) for seed in SEEDS] for n in lengths},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"the value written last, for every question: {figures['last']:.1%}"]
    for arm in figures["arms"]:
        swept = ", ".join(f"{rate}: {share:.1%}" for rate, share in arm["swept"].items())
        lines.append(f"{' + '.join(arm['layers'])}, d_k {arm['d_k']} ({swept})")
        for steps, shares in arm["recalled"].items():
            lines.append(f"  {steps:>5} steps  " + " ".join(f"{share:6.1%}" for share in shares))
    return lines


def run(layers: tuple[str, ...], d_k: int, steps: int, rate: float, seed: int) -> float:
    """Train a reader; return the share of questions about rewritten keys that it answers right."""
    with training.seeded(seed):
        model = Reader([layer(name) for name in layers], d_k)
    batches = associations.texts(BATCH, seed)
    training.train(model, batches, associations.loss, steps=steps, learning_rate=rate, seed=seed)
    return associations.recalled(model)


def layer(name: str) -> Layer:
    """Return what makes a layer of this name."""
    others: dict[str, Layer] = {"attention": Attention, "own token": OwnToken}
    return others.get(name, partial(Memory, row=name))
