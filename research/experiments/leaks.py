"""Lesson 05: where does a leak show? Four small models of characters, three of which read ahead.

Each is asked for the next character with nothing but the past shown, 1 to 32 characters of it: in
training the last of 32 places had no future, and the others had some. Kept, too, are how often Bob
repeats a character that is shown alone, and Cleo's loss with rows that sum to what they did in
training. Two further models have Ann's honest attention and another network, or none.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import mean
from typing import Any

import torch
from einops import reduce
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax
from course_lib.data import characters
from course_lib.feed_forward import FeedForward
from course_lib.instruments import results, training
from course_lib.masks import causal_mask
from course_lib.positions import sinusoidal
from course_lib.self_attention import SelfAttention, project

LESSON = "05"
SEEDS = (0, 1)
N, D_MODEL, D_FF = 32, 48, 192
TRAINING = {"steps": 800, "learning_rate": 0.01}
SETTINGS = {"n": N, "d_model": D_MODEL, "d_ff": D_FF, "batch": 32, "tested": 256, **TRAINING}


class Bob(SelfAttention):
    """Let each token look at the next one, too."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend under a mask whose edge is one place too far to the right."""
        return super().forward(x, torch.ones_like(mask).tril(1))


class Cleo(SelfAttention):
    """Set weights to zero after the softmax, so that their sum tells of hidden scores."""

    scale: Tensor | None = None  # what each row is multiplied by, where it is not left as it is

    def weights(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights that no longer sum to 1, and the values."""
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return softmax(dot_scores(q, k) / q.shape[-1] ** 0.5) * mask, v

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend with weights that no longer sum to 1."""
        weights, v = self.weights(x, mask)
        return (weights if self.scale is None else self.scale[: len(mask), None] * weights) @ v


class Dan(SelfAttention):
    """Subtract the mean of all tokens first, of the hidden ones, too."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend under a mask that is right, with inputs that are not."""
        return super().forward(x - reduce(x, "... n d -> ... 1 d", "mean"), mask)


class Block(nn.Module):
    """Put positions, attention and a network in a row, as the lesson does."""

    def __init__(self, attention: Callable[..., nn.Module], network: Callable[..., nn.Module]):
        super().__init__()
        self.attention = attention(D_MODEL, D_MODEL, D_MODEL)
        self.network = network(D_MODEL, D_FF)

    def forward(self, x: Tensor) -> Tensor:
        """Add positions, attend under a causal mask, apply the network."""
        n = x.shape[-2]
        return self.network(self.attention(x + sinusoidal(n, D_MODEL), causal_mask(n)))


def affine(x: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
    """Apply the two matrices of a network, without what makes it one."""
    return (x @ w_1 + b_1) @ w_2 + b_2


def without_relu(d_model: int, d_ff: int) -> FeedForward:
    """Return a network of the same parameters, without the ReLU."""
    return FeedForward(d_model, d_ff, network=affine)


def no_network(*_: int) -> nn.Identity:
    """Return nothing in the network's place."""
    return nn.Identity()


ARMS: dict[str, tuple[Callable[..., nn.Module], Callable[..., nn.Module]]] = {
    "Ann": (SelfAttention, FeedForward),
    "Cleo": (Cleo, FeedForward),
    "Ann, without the ReLU": (SelfAttention, without_relu),
    "Bob": (Bob, FeedForward),
    "Dan": (Dan, FeedForward),
    "Ann, without a network": (SelfAttention, no_network),
}


def train(name: str, seed: int) -> nn.Sequential:
    """Train one of the models."""
    learning, vocab = characters.split()[0], len(characters.vocab())
    with training.seeded(seed):
        block = Block(*ARMS[name])
        model = nn.Sequential(nn.Embedding(vocab, D_MODEL), block, nn.Linear(D_MODEL, vocab))
    data = characters.batches(learning, N, 32, seed)
    training.train(model, data, next_loss, **TRAINING)
    return model


def next_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the loss of the next character, a mean over all places of whole lines."""
    read, following = batch
    return F.cross_entropy(model(read).mT, following)


def measure_one(name: str, seed: int) -> dict:
    """Train a model, and measure it."""
    return losses(train(name, seed))


@torch.no_grad()
def losses(model: nn.Module) -> dict:
    """Return the loss of whole lines, and of the next character after 1 to N characters alone."""
    batch = tested()
    read, following = batch
    there = F.cross_entropy(model(read).mT, following, reduction="none").mean(0)
    return {
        "whole": round(next_loss(model, batch).item(), 4),
        "whole by place": [round(x, 4) for x in there.tolist()],
        "past by length": past(model),
    }


def tested() -> tuple[Tensor, Tensor]:
    """Return held-out lines, and what follows each of their characters."""
    return next(characters.batches(characters.split()[1], N, SETTINGS["tested"], seed=1))


@torch.no_grad()
def past(model: nn.Module) -> list[float]:
    """Return the loss of the next character after 1 to N characters alone."""
    read, following = tested()
    lengths = range(1, N + 1)
    shown = [F.cross_entropy(model(read[:, :i])[:, -1], following[:, i - 1]) for i in lengths]
    return [round(x.item(), 4) for x in shown]


@torch.no_grad()
def repeats(seed: int) -> float:
    """Return the share of first characters that Bob, shown nothing else, predicts once more."""
    with torch.enable_grad():
        model = train("Bob", seed)
    first = tested()[0][:, :1]
    return round((model(first).argmax(-1) == first).float().mean().item(), 3)


@torch.no_grad()
def scaled(seed: int) -> float:
    """Return Cleo's mean loss on the past alone, rows scaled to their mean sums in training."""
    with torch.enable_grad():
        model = train("Cleo", seed)
    cleo: Any = model[1].attention
    lines, _ = next(characters.batches(characters.split()[0], N, SETTINGS["tested"], seed=5))
    weights, _ = cleo.weights(model[0](lines) + sinusoidal(N, D_MODEL), causal_mask(N))
    cleo.scale = weights.sum(-1).mean(0)
    return round(mean(past(model)), 2)


def measure() -> dict:
    """Return the losses of all models, for each seed, and what Bob and Cleo do alone."""
    runs: dict[str, list[dict]] = {name: [] for name in ARMS}
    for seed, name in product(SEEDS, ARMS):
        measured = partial(measure_one, name, seed)
        runs[name].append(results.once("leaks", SETTINGS, f"{name}, {seed}", measured))
    return {"settings": SETTINGS, "runs": runs, **alone()}


def alone() -> dict:
    """Return what Bob repeats, and Cleo's losses with scaled rows, for each seed."""
    return {
        what.__name__: [
            results.once("leaks", SETTINGS, f"{what.__name__}, {seed}", partial(what, seed))
            for seed in SEEDS
        ]
        for what in (repeats, scaled)
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lengths = (1, 2, 4, 8, 16, 24, 28, 30, 31, 32)
    lines = [f"{'':24}  whole   past" + "".join(f"{i:7}" for i in lengths)]
    for name, runs in figures["runs"].items():
        for run in runs:
            shown = run["past by length"]
            numbers = [run["whole"], mean(shown), *(shown[i - 1] for i in lengths)]
            lines.append(f"{name:24}" + "".join(f"{x:7.2f}" for x in numbers))
    lines += [f"Bob repeats a character that is shown alone: {x:.1%}" for x in figures["repeats"]]
    lines += [f"Cleo on the past alone, rows scaled: {x:.2f}" for x in figures["scaled"]]
    return lines
