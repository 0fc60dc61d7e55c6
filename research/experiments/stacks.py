"""The stacks of characters that the experiments of lesson 07 train."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.add_norm import PreNorm
from course_lib.data import characters
from course_lib.instruments import training
from course_lib.instruments.deep_stack import Stack

SETTINGS = {"d_model": 32, "heads": 4, "n": 16, "batch": 16}


def new(wrap: Callable, blocks: int, seed: int, last_norm: bool | None = None) -> Stack:
    """Make a stack that has learned nothing yet; pre-norm has a last norm unless told otherwise."""
    sizes = len(characters.vocab()), blocks, SETTINGS["d_model"], SETTINGS["heads"]
    with training.seeded(seed):
        return Stack(*sizes, wrap, last_norm=wrap is PreNorm if last_norm is None else last_norm)


def loss(model: Callable, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next characters, in nats."""
    tokens, following = batch
    return F.cross_entropy(model(tokens).flatten(0, -2), following.flatten())


def train(model: Stack, seed: int, **budget: Any) -> list[float]:
    """Train a stack on stretches drawn from a seed; return the loss of each step."""
    learning, _ = characters.split()
    stretches = characters.batches(learning, SETTINGS["n"], SETTINGS["batch"], seed)
    return training.train(model, stretches, loss, seed=seed, **budget).losses


@torch.no_grad()
def held_out_loss(model: Stack) -> float:
    """Return the loss on 512 stretches that no stack was trained on, the same for all."""
    return loss(
        model, next(characters.batches(characters.split()[1], SETTINGS["n"], 512, 0))
    ).item()


def trivial_loss(in_training: bool = False) -> float:
    """Return the loss of one who knows how frequent each character is, and nothing else.

    It is that on held-out text, or with `in_training` on the text that the stacks are trained on.
    """
    learning, held_out = characters.split()
    counts = torch.bincount(learning, minlength=len(characters.vocab())) + 1
    return -(counts / counts.sum()).log()[learning if in_training else held_out].mean().item()
