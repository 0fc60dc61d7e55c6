"""Exploration 12_experts: how many facts can a layer store, at equal operations for each?

A fact is a random key, a vector, and a random value, one of 64: there is no rule to find, so what
is right was stored. Every model is one feed-forward layer, or a mixture in its place, and a linear
map to the values.
"""

import functools
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_lib.feed_forward import FeedForward
from course_lib.instruments import results, training
from course_lib.scaling import Mixture, load_balance, route

LESSON = "12_experts"
SEEDS = (0, 1, 2)

D_MODEL, D_FF, VALUES = 32, 64, 64
FACTS, BATCH, STEPS = 8192, 512, 1500
BALANCE = 0.01  # times the balance loss, which is added to the loss of the values
RATES = (0.01, 0.03, 0.1, 0.3)
# in a second series all keys share a component, SHARED times as large as what they differ in
SHARED, SHARED_RATES = 2.0, (0.003, 0.01, 0.03, 0.1)
SETTINGS = {
    "d_model": D_MODEL, "d_ff": D_FF, "values": VALUES, "facts": FACTS, "batch": BATCH,
    "steps": STEPS, "balance": BALANCE, "rates": RATES, "shared": SHARED,
    "shared_rates": SHARED_RATES,
}  # fmt: skip
once = partial(results.once, "experts", SETTINGS)  # what an ended run has measured is kept

Facts = tuple[Float[Tensor, "facts d_model"], Int[Tensor, " facts"]]


class Store(nn.Module):
    """Answer each key with scores of the values: a layer, a residual connection, a linear map."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer, self.output = layer, nn.Linear(D_MODEL, VALUES)

    def forward(self, keys: Float[Tensor, "m d_model"]) -> Float[Tensor, "m values"]:
        """Score the values."""
        return self.output(F.layer_norm(keys + self.layer(keys), (D_MODEL,)))


def mixture(experts: int, learned: bool = True) -> Mixture:
    """Make a mixture of half-wide experts, of which each key uses two."""
    layer = Mixture(D_MODEL, D_FF // 2, experts, 2)
    layer.w.requires_grad_(learned)
    return layer


ARMS: dict[str, tuple[Any, float]] = {  # what makes the layer, and the factor of the balance loss
    "dense": (lambda: FeedForward(D_MODEL, D_FF), 0.0),
    "2 experts": (lambda: mixture(2), BALANCE),
    "4 experts": (lambda: mixture(4), BALANCE),
    "8 experts": (lambda: mixture(8), BALANCE),
    "16 experts": (lambda: mixture(16), BALANCE),
    "16 experts, no balance loss": (lambda: mixture(16), 0.0),
    "16 experts, router not trained": (lambda: mixture(16, learned=False), 0.0),
    "dense, 8 times as wide": (lambda: FeedForward(D_MODEL, 8 * D_FF), 0.0),
}


WITH_SHARED = {
    "dense": ARMS["dense"],
    "16 experts, no balance loss": ARMS["16 experts, no balance loss"],
    "16 experts, balance loss × 0.1": (lambda: mixture(16), 0.1),
    "16 experts, balance loss × 1": (lambda: mixture(16), 1.0),
    "dense, 8 times as wide": ARMS["dense, 8 times as wide"],
}


def facts(seed: int, shared: float = 0.0) -> Facts:
    """Draw keys and values; `shared` times one random vector is in all keys."""
    draws = torch.Generator().manual_seed(seed)
    keys = torch.randn(FACTS, D_MODEL, generator=draws)
    values = torch.randint(VALUES, (FACTS,), generator=draws)
    return keys + shared * torch.randn(D_MODEL, generator=draws), values


def batches(known: Facts, seed: int) -> Iterator[Facts]:
    """Yield batches without end, all facts once in each round."""
    keys, values = known
    draws = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(FACTS, generator=draws).split(BATCH):
            yield keys[rows], values[rows]


def loss(model: Store, batch: Facts, balance: float) -> Tensor:
    """Return the cross-entropy of the values, in nats, and what balances the experts."""
    keys, values = batch
    error = F.cross_entropy(model(keys), values)
    if not balance:
        return error
    layer = cast(Mixture, model.layer)
    chosen, _ = route(keys, layer.w, layer.k)
    return error + balance * load_balance((keys @ layer.w).softmax(-1), chosen)


def busiest(model: Store, keys: Tensor) -> float | None:
    """Return the busiest expert's share of all choices, in units of an equal share."""
    if not isinstance(model.layer, Mixture):
        return None
    chosen, _ = route(keys, model.layer.w, model.layer.k)
    counts = chosen.flatten().bincount(minlength=len(model.layer.experts))
    return round((counts.max() * len(counts) / counts.sum()).item(), 2)


def train(name: str, rate: float, seed: int, shared: float = 0.0) -> tuple[Store, Facts, float]:
    """Store the facts of a seed; return the model, the facts and the seconds of processor."""
    make, balance = (WITH_SHARED if shared else ARMS)[name]
    with training.seeded(seed):
        model = Store(make())
    known, start = facts(seed, shared), time.process_time()
    stream = batches(known, seed)
    training.train(model, stream, partial(loss, balance=balance), steps=STEPS, learning_rate=rate)
    return model, known, round(time.process_time() - start, 1)


@torch.no_grad()
def run(name: str, rate: float, seed: int, shared: float = 0.0) -> dict[str, Any]:
    """Train a model and ask it for every fact."""
    with torch.enable_grad():
        model, (keys, values), spent = train(name, rate, seed, shared)
    scores = model(keys)
    return {
        "right": round((scores.argmax(-1) == values).float().mean().item(), 4),
        "loss": round(F.cross_entropy(scores, values).item(), 4),
        "busiest": busiest(model, keys),
        "cpu_seconds": spent,
    }


@functools.cache
def size(name: str) -> dict[str, int]:
    """Count the parameters of a layer, and its operations for one key."""
    layer = ARMS[name][0]()
    with FlopCounterMode(display=False) as counter:
        layer(torch.randn(64, D_MODEL))
    parameters = sum(weight.numel() for weight in layer.parameters())
    return {"parameters": parameters, "operations": counter.get_total_flops() // 64}


def measure() -> dict[str, Any]:
    """Return, by arm and rate, a run for each seed."""
    torch.set_num_threads(1)
    runs = {
        name: {
            str(rate): [
                once(f"{name}, {rate}, {seed}", partial(run, name, rate, seed)) for seed in SEEDS
            ]
            for rate in RATES
        }
        for name in ARMS
    }
    with_shared = {
        name: {
            str(rate): [
                once(f"shared: {name}, {rate}, {seed}", partial(run, name, rate, seed, SHARED))
                for seed in SEEDS
            ]
            for rate in SHARED_RATES
        }
        for name in WITH_SHARED
    }
    frequent = [facts(seed)[1].bincount().max().item() / FACTS for seed in SEEDS]
    sizes = {name: size(name) for name in ARMS}
    figures = {"settings": SETTINGS, "sizes": sizes, "frequent": frequent, "runs": runs}
    return figures | {"shared": SHARED, "with_shared": with_shared}


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text: the share of facts that are right, by rate and seed."""
    lines = []
    for key, rates in (("runs", RATES), ("with_shared", SHARED_RATES)):
        lines.append("".join([f"{key:32}", *(f"{rate:<20}" for rate in rates)]))
        for name, by_rate in figures[key].items():
            shares = (" ".join(f"{one['right']:.3f}" for one in runs) for runs in by_rate.values())
            lines.append("".join([f"{name:32}", *(f"{one:20}" for one in shares)]))
    return lines
