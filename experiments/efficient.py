"""Lessons 13 and 14: what a training step costs, and the loss on letters after a few of them."""

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
    """Return the milliseconds of a step by variant, and losses by variant and seed."""
    return {
        "model": MODEL,
        "letters": LETTERS,
        "milliseconds": milliseconds(),
        "next": {name: [next_letter(name, seed) for seed in SEEDS] for name in CAUSAL},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = ["milliseconds a step, and the loss on held-out letters"]
    for name, cost in figures["milliseconds"].items():
        losses = " ".join(f"{loss:.3f}" for loss in figures["next"].get(name, []))
        lines.append(f"{name:18} {cost:6.0f}   {losses}")
    return lines


def new(vocab: int, n: int, attention: Callable, seed: int) -> Reader:
    """Make a model that has learned nothing yet."""
    with training.seeded(seed):
        return Reader(vocab, n, attention)


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy in nats."""
    tokens, targets = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def next_letter(name: str, seed: int) -> float:
    """Train a model that looks back to predict the next letter; return its held-out loss."""
    vocab, n = len(characters.vocab()), LETTERS["n"]
    learning, held_out = characters.split()
    model = new(vocab, n, attention(name, n, causal=True), seed)
    budget = {key: LETTERS[key] for key in ("steps", "learning_rate")}
    batches = characters.batches(learning, n, LETTERS["batch"], seed)
    training.train(model, batches, loss, seed=seed, **budget)
    return held_out_loss(model, characters.batches(held_out, n, 8, 0))


@torch.no_grad()
def held_out_loss(model: nn.Module, batches: Iterator) -> float:
    """Return the mean loss on eight batches that are the same for all."""
    return statistics.mean(loss(model, next(batches)).item() for _ in range(8))


def milliseconds() -> dict[str, float]:
    """Return the CPU time of a training step by variant, all in turn: the median of 7.

    Dense attention is timed too, with its full matrix of scores.
    """
    n, size = LETTERS["n"], LETTERS["batch"]
    makers = {"dense": MultiHeadAttention} | {name: attention(name, n) for name in NAMES}
    models = {name: new(len(characters.vocab()), n, maker, 0) for name, maker in makers.items()}
    batch = next(characters.batches(characters.split()[0], n, size, 0))
    taken = {name: [] for name in models}
    for _ in range(7):
        for name, model in models.items():
            start = time.process_time()
            loss(model, batch).backward()
            taken[name].append(1000 * (time.process_time() - start))
    return {name: statistics.median(times) for name, times in taken.items()}
