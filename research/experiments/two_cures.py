"""Lesson 05: what do feed-forward networks cure in a stack of attention layers, and what do
residual connections cure?

A line is eight tokens of sixteen properties, each +1 or -1, the last always +1 unless the arm says
otherwise. For each token a model has to say its first property ("copy"), or whether its first two
differ ("XOR"). Every arm is trained with each learning rate and seed.
"""

from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import PreNorm
from course_lib.feed_forward import FeedForward, MinimalBlock
from course_lib.instruments import training
from course_lib.instruments.deep_stack import Residual
from course_lib.positions import sinusoidal
from course_lib.self_attention import SelfAttention

LESSON = "05"
SEEDS = (0, 1, 2)
D_MODEL, N = 16, 8
STEPS = {"XOR": 2000, "copy": 2000}
RATES = (0.001, 0.003, 0.01)
EVERY = 100  # steps from one measurement to the next
TORCH = 3**-0.5  # the size of nn.Linear's first weights, where ours are 1
PLAIN = {"feed_forward": False, "join": None, "constant": True, "gain": 1.0, "block": ()}
ARMS = {  # (task, layers): what the stacks have
    ("XOR", 2): {
        "attention, no constant": {**PLAIN, "constant": False},
        "attention": PLAIN,
        "attention, feed-forward": {**PLAIN, "feed_forward": True},
        "feed-forward, no constant": {**PLAIN, "feed_forward": True, "constant": False},
    },
    ("copy", 6): {
        "attention": PLAIN,
        "attention, torch's size": {**PLAIN, "gain": TORCH},
        "attention, gain 2": {**PLAIN, "gain": 2.0},
        "attention, gain 3": {**PLAIN, "gain": 3.0},
        "feed-forward": {**PLAIN, "feed_forward": True},
        "feed-forward, gain 2": {**PLAIN, "feed_forward": True, "gain": 2.0},
        "feed-forward, gain 3": {**PLAIN, "feed_forward": True, "gain": 3.0},
        "minimal blocks": {**PLAIN, "block": ("mask", "positions")},
        "minimal blocks, mask alone": {**PLAIN, "block": ("mask",)},
        "minimal blocks, positions alone": {**PLAIN, "block": ("positions",)},
        "residual": {**PLAIN, "join": Residual},
        "residual, torch's size": {**PLAIN, "join": Residual, "gain": TORCH},
        "feed-forward, residual": {**PLAIN, "feed_forward": True, "join": Residual},
        "feed-forward, residual, norm": {**PLAIN, "feed_forward": True, "join": PreNorm},
    },
}


class Unmasked(SelfAttention):
    """Self-attention that looks at all tokens, whatever the mask says."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend to every token."""
        return super().forward(x)


def stack(
    layers: int, feed_forward: bool, join: type | None, gain: float, block: Collection[str]
) -> nn.Sequential:
    """Make a stack of attention layers, each followed by a feed-forward layer where asked.

    The gain multiplies the first W_V; one below 1 multiplies all first matrices. With `block`, each
    layer is the lesson's smallest block, with the causal mask and the positions that it names.
    """
    if block:
        parts = {
            "positions": sinusoidal if "positions" in block else torch.zeros,
            "attention": SelfAttention if "mask" in block else Unmasked,
        }
        return nn.Sequential(*[MinimalBlock(D_MODEL, 4 * D_MODEL, **parts) for _ in range(layers)])
    parts = []
    for _ in range(layers):
        parts.append(SelfAttention(D_MODEL, D_MODEL, D_MODEL))
        if feed_forward:
            parts.append(FeedForward(D_MODEL, 4 * D_MODEL))
    with torch.no_grad():
        for part in parts:
            for name, parameter in part.named_parameters():
                if gain < 1 or name == "w_v":
                    parameter *= gain
    return nn.Sequential(*[join(part, D_MODEL) if join else part for part in parts])


def lines(
    task: str, size: int, seed: int, constant: bool, n: int = N
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of lines without end, and the answer that each token calls for, 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        bits = torch.randint(0, 2, (size, n, D_MODEL), generator=generator)
        answers = bits[..., 0] if task == "copy" else bits[..., 0] ^ bits[..., 1]
        x = 2.0 * bits - 1
        if constant:
            x[..., -1] = 1
        yield x, answers.float()


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross-entropy of the answers."""
    x, answers = batch
    return F.binary_cross_entropy_with_logits(model(x).squeeze(-1), answers)


@torch.no_grad()
def accuracy(model: nn.Module, batch: tuple[Tensor, Tensor]) -> float:
    """Return the share of tokens with the right answer."""
    x, answers = batch
    return ((model(x).squeeze(-1) > 0) == (answers > 0)).float().mean().item()


@torch.no_grad()
def spread(x: Tensor) -> float:
    """Measure how far tokens are from their line's mean, relative to their size."""
    apart = (x - x.mean(-2, keepdim=True)).norm(dim=(-2, -1))
    return (apart / x.norm(dim=(-2, -1))).mean().item()


def measure_one(
    task: str, layers: int, rate: float, seed: int, constant: bool, **parts: Any
) -> dict:
    """Train one stack; return its accuracy and spread by steps, and its end on lone tokens."""
    with training.seeded(seed):
        inside = stack(layers, **parts)
        model = nn.Sequential(inside, nn.Linear(D_MODEL, 1))
    held_out = next(lines(task, 1000, 1000 + seed, constant))
    alone = next(lines(task, 8000, 2000 + seed, constant, n=1))
    steps, shares, spreads = 0, [], []

    def look() -> None:
        shares.append(round(accuracy(model, held_out), 4))
        spreads.append(float(f"{spread(inside(held_out[0])):.2g}"))

    def watched(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        nonlocal steps
        if steps % EVERY == 0:
            look()
        steps += 1
        return loss(model, batch)

    budget = {"steps": STEPS[task], "learning_rate": rate}
    training.train(model, lines(task, 32, seed, constant), watched, **budget)
    look()
    run = {"accuracy": shares, "spread": spreads, "loss": loss(model, held_out).item()}
    run["alone"] = accuracy(model, alone)
    return run


def measure() -> dict:
    """Return what came of each task, arm, learning rate and seed."""
    figures = {}
    for (task, layers), arms in ARMS.items():
        for name, arm in arms.items():
            figures.setdefault(task, {})[name] = {
                str(rate): [measure_one(task, layers, rate, seed, **arm) for seed in SEEDS]
                for rate in RATES
            }
    return {"every": EVERY, "steps": STEPS, **figures}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    rows = []
    for task, layers in ARMS:
        rows.append(f"{task}, {layers} layers: accuracy at the end (spread at first, at the end)")
        for name, rates in figures[task].items():
            for rate, runs in rates.items():
                shown = [
                    f"{run['accuracy'][-1]:.2f} ({run['spread'][0]:.0e}, {run['spread'][-1]:.0e})"
                    for run in runs
                ]
                rows.append(f"  {name:30} {rate:5} " + "  ".join(shown))
    return rows
