"""The texts of `associations` as tokens: a key and its value are two of them (lesson 15).

A text has WRITES keys, each followed by its value, and then QUESTIONS, keys alone. To answer, a
model must join a value with the key before it, and then look the key up.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import PreNorm
from course_lib.feed_forward import FeedForward
from course_lib.instruments.associations import (
    D_FF,
    D_MODEL,
    QUESTIONS,
    TESTED,
    VALUES,
    Layer,
    drawn,
)
from course_lib.positions import LearnedPositions

KEYS = 6
WRITES = 12  # a key is written about twice, and its newest value counts
N = 2 * WRITES + QUESTIONS

# tokens (a value's number comes after those of all keys), answers, asked and written twice
Batch = tuple[
    Int[Tensor, "batch n"], Int[Tensor, "batch questions"], Bool[Tensor, "batch questions"]
]


class Reader(nn.Module):
    """Blocks of a layer and a feed-forward network, which score the values at each question."""

    def __init__(self, layers: Sequence[Layer], d_k: int):
        super().__init__()
        self.tokens = nn.Embedding(KEYS + VALUES, D_MODEL)
        self.positions = LearnedPositions(N, D_MODEL)
        parts = [part for layer in layers for part in (layer(d_k), FeedForward(D_MODEL, D_FF))]
        self.parts = nn.Sequential(*(PreNorm(part, D_MODEL) for part in parts))
        self.head = nn.Linear(D_MODEL, VALUES)

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch questions values"]:
        """Return the logits of all values for each question."""
        return self.head(self.parts(self.positions(self.tokens(tokens)))[:, -QUESTIONS:])


def texts(size: int, seed: int) -> Iterator[Batch]:
    """Yield batches of `size` random texts without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        keys, values, asked, newest, again = drawn(size, KEYS, WRITES, generator)
        written = torch.stack([keys, KEYS + values], -1).flatten(1)
        yield torch.cat([written, asked], 1), newest, again


def loss(model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of the answers, in nats."""
    tokens, answers, _ = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), answers.flatten())


@torch.no_grad()
def recalled(model: nn.Module) -> float:
    """Return the share of right answers for keys that were written more than once."""
    tokens, answers, again = next(texts(TESTED, 1000))
    return (model(tokens).argmax(-1) == answers)[again].float().mean().item()


def last_value() -> float:
    """Return what `recalled` would be if every answer were the value written last of all."""
    tokens, answers, again = next(texts(TESTED, 1000))
    last = tokens[:, 2 * WRITES - 1 : 2 * WRITES] - KEYS
    return (last == answers)[again].float().mean().item()
