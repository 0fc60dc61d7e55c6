"""Lesson 07: an encoder with batch norm, in training and with the running averages after it."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import PostNorm, layer_norm
from course_lib.data import characters
from course_lib.instruments import training
from course_lib.instruments.deep_stack import RunningBatchNorm, Stack

LESSON = "07"
SEEDS = (0, 1, 2)

SIZES = [1, 4, 16, 64]  # lines in a batch
SETTINGS = {"blocks": 2, "d_model": 32, "heads": 4, "n": 16, "hidden": 0.15}
BUDGET = {"steps": 500, "learning_rate": 0.003}
NORMS = {"layer norm": lambda d_model: layer_norm, "batch norm": RunningBatchNorm}


def measure() -> dict:
    """Return for each norm, batch size and seed the held-out losses in both modes."""
    return {
        "sizes": SIZES,
        "settings": {**SETTINGS, **BUDGET},
        "runs": {
            name: [[_run(norm, size, seed) for seed in SEEDS] for size in SIZES]
            for name, norm in NORMS.items()
        },
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{name}, {size:2} lines a batch: "
        + ", ".join(f"batch {run['batch']:.3f} running {run['running']:.3f}" for run in seeds)
        for name, by_size in figures["runs"].items()
        for size, seeds in zip(figures["sizes"], by_size, strict=True)
    ]


def new(norm, seed: int) -> Stack:
    """Make an encoder in which each character sees all others; one more token hides some."""
    vocab = len(characters.vocab()) + 1
    sizes = SETTINGS["blocks"], SETTINGS["d_model"], SETTINGS["heads"]
    with training.seeded(seed):
        wrap = lambda sublayer, d_model: PostNorm(sublayer, d_model, norm(d_model))  # noqa: E731
        return Stack(vocab, *sizes, wrap, causal=False)


def hide(tokens: Tensor, size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield lines in which some characters are hidden, and the lines as they were."""
    generator = torch.Generator().manual_seed(seed)
    for lines, _ in characters.batches(tokens, SETTINGS["n"], size, seed):
        chosen = torch.rand(lines.shape, generator=generator) < SETTINGS["hidden"]
        chosen[0, 0] |= not chosen.any()
        yield lines.masked_fill(chosen, len(characters.vocab())), lines


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the hidden characters, in nats."""
    seen, lines = batch
    hidden = seen != lines
    return F.cross_entropy(model(seen)[hidden], lines[hidden])


def _run(norm, size: int, seed: int) -> dict:
    """Train an encoder; return its losses by the running averages and by the batch's own."""
    learning, held_out = characters.split()
    model = new(norm, seed)
    training.train(model, hide(learning, size, seed), loss, seed=seed, **BUDGET)
    batches = [
        batch for batch, _ in zip(hide(held_out, size, 0), range(1024 // size), strict=False)
    ]
    losses = {}
    for mode in ("running", "batch"):
        model.train(mode == "batch")
        with torch.no_grad():
            each = [loss(model, batch) * (batch[0] != batch[1]).sum() for batch in batches]
        hidden = sum((seen != lines).sum() for seen, lines in batches)
        losses[mode] = round((sum(each) / hidden).item(), 4)
    return losses
