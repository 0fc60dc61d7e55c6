"""Lesson 15: the block of 2017, ten parts swapped for later ones, each alone and all together.

Every model reads the same characters in the same number of steps, at the best of three learning
rates, which another seed has chosen. A swap leaves the operations of a token about as they are: a
gated network is narrower, and a mixture uses two experts of half the width.
"""

from functools import partial
from typing import Any

import torch
from torch import nn

from course_lib.instruments import results
from course_lib.instruments.ten_swaps import (
    ALL,
    CHOSEN,
    D_MODEL,
    HEADS,
    LAYERS,
    SIZES,
    SWAPS,
    Components,
    N,
    cached,
    swapped,
)
from course_lib.language_model import LanguageModel
from research.experiments.architectures import Balanced
from research.experiments.language_model import mean_loss, split
from research.experiments.recipes import Rung, adamw, by_steps, muon, train

LESSON = "15"
SEEDS = (0, 1, 2)
CHOSEN_BY = 3  # the seed that chooses the rates

BATCH, STEPS = 16, 400
RATES = {adamw: (0.003, 0.01, 0.03), muon: (0.01, 0.02, 0.04)}
ARMS = {
    "2017": (),
    "no positions": ("no positions",),
    **{name: (name,) for name in SWAPS},
    "rotary and Muon": ("rotary", "Muon"),
    "together": ALL,
}
LEFT_OUT = {f"without {name}": tuple(x for x in ALL if x != name) for name in ALL}
SETTINGS = {"batch": BATCH, "steps": STEPS, "n": N, "layers": LAYERS, "d_model": D_MODEL}
once = partial(results.once, "ten_swaps", SETTINGS)  # what an ended run has measured is kept
OWN = Components(mixture=Balanced)


def run(name: str, rate: float, seed: int) -> float:
    """Train an arm at a learning rate; return its held-out loss, in nats a character."""
    tokens, held_out, vocab = split()
    optimizers = partial(muon if "Muon" in (ARMS | LEFT_OUT)[name] else adamw, rate=rate)
    sizes = {"layers": LAYERS, "d_model": D_MODEL, "heads": HEADS, "n": N, "batch": BATCH}
    rung = Rung(name, **sizes, **swapped((ARMS | LEFT_OUT)[name], OWN), optimizers=optimizers)
    predictor, _ = train(rung, tokens, len(vocab), by_steps(STEPS), seed)
    loss = round(mean_loss(predictor, held_out), 4)
    print(f"{name}, rate {rate}, seed {seed}: {loss}", flush=True)
    return loss


def parameters(name: str) -> tuple[int, int]:
    """Return how many parameters an arm has, and how many of them a token uses."""
    _, _, vocab = split()
    model = LanguageModel(len(vocab), *SIZES, **swapped((ARMS | LEFT_OUT)[name], OWN))
    experts = [layer.experts for layer in model.modules() if isinstance(layer, Balanced)]
    idle = [expert for row in experts for expert in row[CHOSEN:]]
    return count(model), count(model) - sum(map(count, idle))


def count(part: nn.Module) -> int:
    """Return how many parameters a part has."""
    return sum(p.numel() for p in part.parameters())


def measure() -> dict[str, Any]:
    """Return for each arm its size, its cache, and its losses by rate and by seed."""
    torch.set_num_threads(1)
    arms = {}
    for name, swaps in ARMS.items():
        rates = RATES[muon if "Muon" in swaps else adamw]
        by_rate = {x: once(f"{name}, {x}", partial(run, name, x, CHOSEN_BY)) for x in rates}
        rate = min(rates, key=by_rate.__getitem__)
        losses = [once(f"{name}, {rate}, {x}", partial(run, name, rate, x)) for x in SEEDS]
        total, used = parameters(name)
        arms[name] = {
            "parameters": total,
            "used": used,
            "cached": cached(swaps),
            "rate": rate,
            "by_rate": {str(rate): loss for rate, loss in by_rate.items()},
            "losses": losses,
        }
    without = {}
    for name, swaps in LEFT_OUT.items():
        rate = arms["together" if "Muon" in swaps else "pre-norm"]["rate"]
        without[name] = [once(f"{name}, {x}", partial(run, name, rate, x)) for x in SEEDS[:2]]
    return {"settings": SETTINGS, "arms": arms, "left_out": without}


def table(figures: dict[str, Any]) -> list[str]:
    """Return a line for each arm."""
    lines = [
        f"{name:18}{arm['parameters']:9,} parameters, {arm['used']:7,} used, {arm['cached']:6,} "
        f"cached, rate {arm['rate']:<5} " + "  ".join(f"{loss:.3f}" for loss in arm["losses"])
        for name, arm in figures["arms"].items()
    ]
    return lines + [
        f"{name:24}" + "  ".join(f"{loss:.3f}" for loss in losses)
        for name, losses in figures["left_out"].items()
    ]
