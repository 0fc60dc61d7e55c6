"""Associative recall: how many pairs of a key and a value can one attention head keep apart?

A sequence lists pairs. Then it asks for each key once, and the head must name its value
(lesson 14).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

KEYS, VALUES = 64, 10
D_MODEL = 64
TESTED = 64  # sequences


class Pairs(NamedTuple):
    """Sequences of pairs, the keys that are asked for, and their values."""

    keys: Int[Tensor, "size pairs"]
    values: Int[Tensor, "size pairs"]
    asked: Int[Tensor, "size pairs"]
    answers: Int[Tensor, "size pairs"]


class Head(nn.Module):
    """One head: the queries are made of keys, its keys and values of pairs.

    No positions: which value belongs to a key is all there is to know. `rule(q, k, v)` attends.
    """

    def __init__(self, d_k: int, d_v: int, rule: Callable[..., Tensor]):
        super().__init__()
        self.key, self.value = nn.Embedding(KEYS, D_MODEL), nn.Embedding(VALUES, D_MODEL)
        self.w_q, self.w_k, self.w_v = (nn.Linear(D_MODEL, size) for size in (d_k, d_k, d_v))
        self.answer, self.rule = nn.Linear(d_v, VALUES), rule

    def forward(self, batch: Pairs) -> Float[Tensor, "size pairs values"]:
        """Return the scores of all values for each key that is asked for."""
        pairs = self.key(batch.keys) + self.value(batch.values)
        queries = self.w_q(self.key(batch.asked))
        return self.answer(self.rule(queries, self.w_k(pairs), self.w_v(pairs)))


def draw(pairs: int, size: int, generator: torch.Generator) -> Pairs:
    """Draw sequences: different keys, any values, and each of the keys once as a question."""
    keys = torch.rand(size, KEYS, generator=generator).argsort(-1)[:, :pairs]
    values = torch.randint(VALUES, (size, pairs), generator=generator)
    order = torch.rand(size, pairs, generator=generator).argsort(-1)
    return Pairs(keys, values, keys.gather(1, order), values.gather(1, order))


def sequences(pairs: int, size: int, seed: int) -> Iterator[Pairs]:
    """Yield batches of `size` random sequences without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield draw(pairs, size, generator)


def loss(head: nn.Module, batch: Pairs) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of the values, in nats."""
    return F.cross_entropy(head(batch).flatten(0, 1), batch.answers.flatten())


@torch.no_grad()
def share_right(head: nn.Module, pairs: int) -> float:
    """Return the share of keys whose value gets the highest score, in unseen sequences."""
    batch = draw(pairs, TESTED, torch.Generator().manual_seed(1000))
    return (head(batch).argmax(-1) == batch.answers).float().mean().item()
