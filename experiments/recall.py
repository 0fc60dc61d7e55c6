"""Lesson 14: how many pairs of a key and a value can one attention head keep apart?"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.efficient.linear import linear_attention
from course_lib.efficient.linformer import Linformer
from course_lib.efficient.memory_compressed import MemoryCompressed
from course_lib.instruments import training
from course_lib.self_attention import scaled_dot_product_attention

LESSON = "14"
SEEDS = (0, 1, 2)

KEYS, VALUES = 64, 10
D_MODEL, D_K = 64, 16
MIXTURES, WIDTH = 16, 4
PAIRS = (4, 16, 32, 64)
TRAINING = {"steps": 1000, "learning_rate": 0.005}
BATCH, EVERY = 32, 100
TESTED = 64  # sequences, in each of which every key is asked for

# one head of this size
ROWS = {
    "dense": D_K,
    "linear": D_K,
    "linear, d_k = 32": 2 * D_K,
    "Linformer": D_K,
    "memory-compressed": D_K,
}


class Recalled(NamedTuple):
    """Sequences of pairs, the keys that are asked for, and their values."""

    keys: Tensor
    values: Tensor
    asked: Tensor
    answers: Tensor


class Recall(nn.Module):
    """One head: the queries are made of keys, its keys and values of pairs.

    No positions: which value belongs to a key is all there is to know.
    """

    def __init__(self, d_k: int, rule: Callable[..., Tensor]):
        super().__init__()
        self.key, self.value = nn.Embedding(KEYS, D_MODEL), nn.Embedding(VALUES, D_MODEL)
        self.w_q, self.w_k, self.w_v = (nn.Linear(D_MODEL, d_k) for _ in range(3))
        self.answer, self.rule = nn.Linear(d_k, VALUES), rule

    def forward(self, batch: Recalled) -> Tensor:
        """Return the scores of all values for each key that is asked for."""
        pairs = self.key(batch.keys) + self.value(batch.values)
        queries = self.w_q(self.key(batch.asked))
        return self.answer(self.rule(queries, self.w_k(pairs), self.w_v(pairs)))


def measure() -> dict:
    """Return for each row and number of pairs the shares recalled on the way, by seed."""
    return {
        "settings": TRAINING | {"d_k": D_K, "mixtures": MIXTURES, "width": WIDTH, "every": EVERY},
        "pairs": list(PAIRS),
        "runs": {
            name: {str(pairs): [run(name, pairs, seed) for seed in SEEDS] for pairs in PAIRS}
            for name in ROWS
        },
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = ["share of keys whose value is right, by pairs in the sequence and by seed"]
    for name, by_pairs in figures["runs"].items():
        for pairs, curves in by_pairs.items():
            shares = " ".join(f"{curve[-1]:.2f}" for curve in curves)
            half = " ".join(f"{curve[len(curve) // 2]:.2f}" for curve in curves)
            lines.append(f"{name:18} {pairs:>3}   {shares}   after half of the steps {half}")
    return lines


def rule_of(name: str, pairs: int, d_k: int) -> Callable[..., Tensor]:
    """Return how a row attends to sequences of so many pairs."""
    if name.startswith("linear"):
        return linear_attention
    if name == "Linformer":
        return Linformer(pairs, MIXTURES)
    if name == "memory-compressed":
        return MemoryCompressed(d_k, WIDTH)
    return scaled_dot_product_attention


def draw(pairs: int, size: int, generator: torch.Generator) -> Recalled:
    """Draw sequences: different keys, any values, and each of the keys once as a question."""
    keys = torch.rand(size, KEYS, generator=generator).argsort(-1)[:, :pairs]
    values = torch.randint(VALUES, (size, pairs), generator=generator)
    order = torch.rand(size, pairs, generator=generator).argsort(-1)
    return Recalled(keys, values, keys.gather(1, order), values.gather(1, order))


def loss(model: nn.Module, batch: Recalled) -> Tensor:
    """Return the mean cross-entropy of the values, in nats."""
    return F.cross_entropy(model(batch).flatten(0, 1), batch.answers.flatten())


@torch.no_grad()
def share_right(model: nn.Module, pairs: int) -> float:
    """Return the share of keys whose value gets the highest score, in unseen sequences."""
    batch = draw(pairs, TESTED, torch.Generator().manual_seed(1000))
    return (model(batch).argmax(-1) == batch.answers).float().mean().item()


def run(name: str, pairs: int, seed: int) -> list[float]:
    """Train one head; return the share recalled after 0, 100, 200, ... steps."""
    with training.seeded(seed):
        model = Recall(ROWS[name], rule_of(name, pairs, ROWS[name]))
    curve, generator = [], torch.Generator().manual_seed(seed)

    def batches() -> Iterator[Recalled]:
        for step in range(TRAINING["steps"]):
            if step % EVERY == 0:
                curve.append(share_right(model, pairs))
            yield draw(pairs, BATCH, generator)

    training.train(model, batches(), loss, **TRAINING)
    return [*curve, share_right(model, pairs)]
