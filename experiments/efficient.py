"""Lesson 12: what each attention gives up, and what it costs: next letters, and a needle."""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import characters
from course_lib.efficient.variants import VARIANTS
from course_lib.encoder import Encoder, EncoderBlock
from course_lib.instruments import training
from course_lib.multi_head import MultiHeadAttention

LESSON = "13"
SEEDS = (0, 1, 2)

MODEL = {"layers": 2, "d_model": 64, "heads": 4, "d_ff": 256}
LETTERS = {"n": 512, "batch": 4, "steps": 300, "learning_rate": 0.005}
NEEDLE = {"n": 256, "batch": 16, "steps": 300, "learning_rate": 0.003}
NEEDLES = 10
DISTANCES = [2, 8, 16, 32, 64, 96, 128, 192, 250]
TESTED = 256  # texts for each distance

# tiled attention is exact, and stands for dense attention
NAMES = {"exact": "tiled"} | {name: name for name in VARIANTS if name != "tiled"}
CAUSAL = tuple(name for name in NAMES if VARIANTS[NAMES[name]].causal)


def attention(name: str, n: int, **more: Any) -> Callable[[int, int], nn.Module]:
    """Return what makes a variant's layer, for texts of n words: attention(d_model, heads)."""
    variant = VARIANTS[NAMES[name]]

    def make(d_model: int, heads: int) -> nn.Module:
        rule = variant.set_up(variant.experiment, n, d_model // heads, **more)
        return variant.layer(d_model, heads, rule)

    return make


class Reader(nn.Module):
    """An encoder that scores a token at each place; `attention(d_model, heads)` makes its layers.

    The scores are products with the tokens' own embeddings.
    """

    def __init__(self, vocab: int, n: int, attention: Callable):
        super().__init__()
        block = partial(EncoderBlock, attention=attention)
        self.encoder = Encoder(vocab, **MODEL, max_length=n, norm="pre", block=block)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the scores of all tokens at each place."""
        return self.encoder(tokens, mask) @ self.encoder.embedding.table.T


def measure() -> dict:
    """Return losses and seconds by variant and seed, and who finds the needle how far back."""
    return {
        "model": MODEL,
        "letters": LETTERS,
        "needle": NEEDLE,
        "distances": DISTANCES,
        "milliseconds": milliseconds(),
        "next": {name: [next_letter(name, seed) for seed in SEEDS] for name in CAUSAL},
        "found": {name: [needles_found(name, seed) for seed in SEEDS] for name in NAMES},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = ["milliseconds a step, and the loss on held-out letters"]
    for name, cost in figures["milliseconds"].items():
        losses = " ".join(f"{loss:.3f}" for loss in figures["next"].get(name, []))
        lines.append(f"{name:18} {cost:6.0f}   {losses}")
    lines.append("needles found, by distance " + " ".join(f"{d:5}" for d in figures["distances"]))
    for name, runs in figures["found"].items():
        for seed, shares in enumerate(runs):
            lines.append(f"{name:18} seed {seed}   " + " ".join(f"{s:5.2f}" for s in shares))
    return lines


def new(vocab: int, n: int, attention: Callable, seed: int) -> Reader:
    """Make a model that has learned nothing yet."""
    with training.seeded(seed):
        return Reader(vocab, n, attention)


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy in nats; a target of -100 stands for none."""
    tokens, targets = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def next_letter(name: str, seed: int) -> float:
    """Train a model that looks back to predict the next letter; return its held-out loss."""
    vocab, n = len(characters.vocab()), LETTERS["n"]
    learning, held_out = characters.split()
    model = new(vocab, n, attention(name, n, causal=True), seed)
    train(model, characters.batches(learning, n, LETTERS["batch"], seed), LETTERS, seed)
    return held_out_loss(model, characters.batches(held_out, n, 8, 0))


def train(model: nn.Module, batches: Iterator, budget: dict, seed: int) -> None:
    """Train by one budget for all."""
    rates = {key: budget[key] for key in ("steps", "learning_rate")}
    training.train(model, batches, loss, seed=seed, **rates)


@torch.no_grad()
def held_out_loss(model: nn.Module, batches: Iterator) -> float:
    """Return the mean loss on eight batches that are the same for all."""
    return statistics.mean(loss(model, next(batches)).item() for _ in range(8))


def milliseconds() -> dict[str, float]:
    """Time a training step by variant, all in turn, and plain dense attention: the median of 7."""
    n, size = LETTERS["n"], LETTERS["batch"]
    makers = {"dense": MultiHeadAttention} | {name: attention(name, n) for name in NAMES}
    models = {name: new(len(characters.vocab()), n, maker, 0) for name, maker in makers.items()}
    batch = next(characters.batches(characters.split()[0], n, size, 0))
    taken = {name: [] for name in models}
    for _ in range(7):
        for name, model in models.items():
            start = time.perf_counter()
            loss(model, batch).backward()
            taken[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(times) for name, times in taken.items()}


def needles(text: Tensor, distance: int | None, size: int, seed: int) -> Iterator:
    """Yield texts with one of ten needles in them, and a question at the end: which one was it?

    The needle stands `distance` words before the end, or anywhere, near more often than far.
    """
    generator = torch.Generator().manual_seed(seed)
    vocab, n = len(characters.vocab()), NEEDLE["n"]
    for tokens, _ in characters.batches(text, n, size, seed):
        needle = vocab + torch.randint(NEEDLES, (size, 1), generator=generator)
        # as often from 1 to 2 words back as from 100 to 200
        back = (n ** torch.rand(size, 1, generator=generator)).long().clamp(1, n - 1)
        place = n - 1 - (back if distance is None else torch.full_like(back, distance))
        question = torch.full_like(needle, vocab + NEEDLES)
        targets = torch.full_like(tokens, -100)
        targets[:, -1:] = needle
        yield torch.cat([tokens.scatter(1, place, needle)[:, :-1], question], 1), targets


def needles_found(name: str, seed: int) -> list[float]:
    """Train a model to name the needle; return how often it is right, by distance."""
    learning, held_out = characters.split()
    n = NEEDLE["n"]
    model = new(len(characters.vocab()) + NEEDLES + 1, n, attention(name, n), seed)
    train(model, needles(learning, None, NEEDLE["batch"], seed), NEEDLE, seed)
    return [share_found(model, held_out, distance) for distance in DISTANCES]


@torch.no_grad()
def share_found(model: nn.Module, text: Tensor, distance: int) -> float:
    """Return the share of texts in which the needle gets the highest score."""
    tokens, targets = next(needles(text, distance, TESTED, 1))
    named = torch.cat([model(few)[:, -1].argmax(-1) for few in tokens.split(32)])
    return (named == targets[:, -1]).float().mean().item()
