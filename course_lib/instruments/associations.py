"""Texts of keys and values, and models that must name a key's newest value (lesson 15).

A text has WRITES tokens, each a key with a value, and then QUESTIONS, keys alone.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import PreNorm
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask
from course_lib.positions import LearnedPositions
from course_lib.self_attention import scaled_dot_product_attention

KEYS, VALUES = 12, 16
WRITES, QUESTIONS = 24, 8  # a key is written about twice, and its newest value counts
N = WRITES + QUESTIONS
D_MODEL, D_FF = 64, 128
TESTED = 512  # texts
UNTRAINED = 200  # texts for a memory that nobody trains

Layer = Callable[[int], nn.Module]  # d_k -> a layer, (batch, n, D_MODEL) -> the same shape
# keys, values (VALUES where it is asked for), answers (-100 elsewhere), asked and written twice
Batch = tuple[
    Int[Tensor, "batch n"],
    Int[Tensor, "batch n"],
    Int[Tensor, "batch n"],
    Bool[Tensor, "batch questions"],
]


class Attention(nn.Module):
    """One head of causal attention: all keys and values are kept."""

    def __init__(self, d_k: int):
        super().__init__()
        self.q, self.k = (nn.Linear(D_MODEL, d_k) for _ in range(2))
        self.v, self.out = (nn.Linear(D_MODEL, D_MODEL) for _ in range(2))

    def forward(self, x: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        """Let each token attend to those before it."""
        mask = causal_mask(x.shape[-2])
        return self.out(scaled_dot_product_attention(self.q(x), self.k(x), self.v(x), mask))


class Reader(nn.Module):
    """Blocks of a layer and a feed-forward network, which score the values at each position."""

    def __init__(self, layers: Sequence[Layer], d_k: int):
        super().__init__()
        self.keys = nn.Embedding(KEYS, D_MODEL)
        # one more than there are values: a question
        self.values = nn.Embedding(VALUES + 1, D_MODEL)
        self.positions = LearnedPositions(N, D_MODEL)
        parts = [part for layer in layers for part in (layer(d_k), FeedForward(D_MODEL, D_FF))]
        self.parts = nn.Sequential(*(PreNorm(part, D_MODEL) for part in parts))
        self.head = nn.Linear(D_MODEL, VALUES)

    def forward(
        self, keys: Int[Tensor, "batch n"], values: Int[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n values"]:
        """Return the logits of all values at each position."""
        return self.head(self.parts(self.positions(self.keys(keys) + self.values(values))))


def drawn(
    size: int, keys: int, writes: int, generator: torch.Generator
) -> tuple[
    Int[Tensor, "size writes"],
    Int[Tensor, "size writes"],
    Int[Tensor, "size questions"],
    Int[Tensor, "size questions"],
    Bool[Tensor, "size questions"],
]:
    """Draw keys and values, QUESTIONS of these keys, their newest values, and if written again."""
    written = torch.randint(0, keys, (size, writes), generator=generator)
    values = torch.randint(0, VALUES, (size, writes), generator=generator)
    # ask for keys that have been written
    places = torch.rand(size, writes, generator=generator).argsort(-1)[:, :QUESTIONS]
    asked = written.gather(1, places)
    same = asked.unsqueeze(-1) == written.unsqueeze(-2)
    # the newest place at which the key was written
    newest = (same * torch.arange(1, writes + 1)).argmax(-1)
    return written, values, asked, values.gather(1, newest), same.sum(-1) > 1


def texts(size: int, seed: int) -> Iterator[Batch]:
    """Yield batches of `size` random texts without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        keys, values, asked, newest, again = drawn(size, KEYS, WRITES, generator)
        answers = torch.full((size, N), -100)
        answers[:, WRITES:] = newest
        questions = torch.full((size, QUESTIONS), VALUES)
        yield torch.cat([keys, asked], 1), torch.cat([values, questions], 1), answers, again


def loss(model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of the answers, in nats."""
    keys, values, answers, _ = batch
    return F.cross_entropy(model(keys, values).flatten(0, 1), answers.flatten())


@torch.no_grad()
def recalled(model: nn.Module) -> float:
    """Return the share of right answers for keys that were written more than once."""
    keys, values, answers, again = next(texts(TESTED, 1000))
    right = model(keys, values)[:, WRITES:].argmax(-1) == answers[:, WRITES:]
    return right[again].float().mean().item()


def last_value() -> float:
    """Return what `recalled` would be if every answer were the value written last of all."""
    _, values, answers, again = next(texts(TESTED, 1000))
    right = values[:, WRITES - 1 : WRITES] == answers[:, WRITES:]
    return right[again].float().mean().item()


def vectors(
    d: int, keys: int = KEYS, even: bool = False
) -> tuple[
    Float[Tensor, "batch m d"],
    Float[Tensor, "batch m d_v"],
    Float[Tensor, "values d_v"],
    Int[Tensor, "batch keys"],
    Int[Tensor, "batch keys"],
]:
    """Draw 200 texts for a memory that nobody trains: twice as many writes as keys, then all keys.

    Returns keys of norm 1 (in random directions, or spread evenly), what is written under them
    (zeros for a question), the vectors of all values, the newest value of each key, and how often
    each key was written. `d` is even.
    """
    size, writes = UNTRAINED, 2 * keys
    directions = F.normalize(torch.randn(size, keys, d), dim=-1)
    if even:
        # the least possible sum of squared overlaps
        turns = torch.arange(keys)[:, None] * torch.arange(1, d // 2 + 1) * 2 * math.pi / keys
        circles = torch.cat([turns.cos(), turns.sin()], dim=1) / (d / 2) ** 0.5
        directions = circles.expand_as(directions)
    codes = torch.randn(VALUES, 64)
    which = torch.randint(keys, (size, writes))
    value = torch.randint(VALUES, (size, writes))
    same = which[:, None] == torch.arange(keys)[:, None]
    newest = value.gather(1, (same * torch.arange(1, writes + 1)).argmax(-1))
    written = directions.gather(1, which[..., None].expand(-1, -1, d))
    tokens = torch.cat([written, directions], 1)
    values = torch.cat([codes[value], torch.zeros(size, keys, 64)], 1)
    return tokens, values, codes, newest, same.sum(-1)


def new_subject(
    d: int, old: int = 24, keys: int = 8
) -> tuple[
    Float[Tensor, "batch m d"],
    Float[Tensor, "batch m d_v"],
    Float[Tensor, "values d_v"],
    Int[Tensor, "batch keys"],
]:
    """Draw 200 texts that write `old` keys, then `keys` of a new subject, and ask for the new ones.

    Each key is written once. Returns keys of norm 1 in random directions, what is written under
    them (zeros for a question), the vectors of all values, and the value of each new key.
    """
    directions = F.normalize(torch.randn(UNTRAINED, old + keys, d), dim=-1)
    codes = torch.randn(VALUES, 64)
    value = torch.randint(VALUES, (UNTRAINED, old + keys))
    tokens = torch.cat([directions, directions[:, old:]], 1)
    values = torch.cat([codes[value], torch.zeros(UNTRAINED, keys, 64)], 1)
    return tokens, values, codes, value[:, old:]


def nearest(
    read: Float[Tensor, "batch m d_v"], codes: Float[Tensor, "values d_v"]
) -> Int[Tensor, "batch m"]:
    """Return the value whose vector is nearest to what is read."""
    return torch.cdist(read, codes.expand(len(read), -1, -1)).argmin(-1)
