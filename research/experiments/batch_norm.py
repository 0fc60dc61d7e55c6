"""Lesson 07: an encoder with batch norm, in training and with the running averages after it."""

import copy
import itertools
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

SIZES = [1, 4, 16, 64]  # lines in a batch of the training
ALONE = 16  # trained with so many lines, a model is used with batches of each size
HELD_OUT = 1024  # lines
SETTINGS = {"blocks": 2, "d_model": 32, "heads": 4, "n": 16, "hidden": 0.15}
BUDGET = {"steps": 500, "learning_rate": 0.003}
PATIENT_STEPS = 4000  # for both norms, with batches of ALONE lines
NORMS = {"layer norm": lambda d_model: layer_norm, "batch norm": RunningBatchNorm}


def measure() -> dict:
    """Return held-out losses for each norm, batch size of the training, and seed."""
    return {
        "sizes": SIZES,
        "alone": ALONE,
        "settings": {**SETTINGS, **BUDGET},
        "runs": {
            name: [[_run(norm, size, seed) for seed in SEEDS] for size in SIZES]
            for name, norm in NORMS.items()
        },
        "patient steps": PATIENT_STEPS,
        "patient": {
            name: [_run(norm, ALONE, seed, steps=PATIENT_STEPS) for seed in SEEDS]
            for name, norm in NORMS.items()
        },
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{name}, trained with {size:2} lines a batch: running {run['running']:.3f}, by batches "
        + ", ".join(f"of {used}: {loss:.3f}" for used, loss in run["batch"].items())
        for name, by_size in figures["runs"].items()
        for size, seeds in zip(figures["sizes"], by_size, strict=True)
        for run in seeds
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


def _run(norm, size: int, seed: int, **options: float) -> dict:
    """Train an encoder; return its losses by the running averages and by batches' own statistics.

    The batches are as large as those of the training, and for one model of any size.
    """
    learning, _ = characters.split()
    model = new(norm, seed)
    budget = {**BUDGET, **options}
    training.train(model, hide(learning, size, seed), loss, seed=seed, **budget)
    used = SIZES if size == ALONE and norm is RunningBatchNorm else [size]
    return {
        "running": _held_out_loss(model, size),
        "batch": {
            str(lines): _held_out_loss(copy.deepcopy(model).train(), lines) for lines in used
        },
    }


@torch.no_grad()
def _held_out_loss(model: Stack, size: int) -> float:
    """Return the loss on held-out lines, in batches of some size."""
    _, held_out = characters.split()
    batches = list(itertools.islice(hide(held_out, size, 0), HELD_OUT // size))
    hidden = [(seen != lines).sum() for seen, lines in batches]
    losses = [count * loss(model, batch) for count, batch in zip(hidden, batches, strict=True)]
    return round((torch.stack(losses).sum() / torch.stack(hidden).sum()).item(), 4)
