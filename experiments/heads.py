"""Lesson 06: how many heads serve a block best, with equal parameters, where two are looked up.

The task is that of the pointers with symbols for numbers: each of n tokens has a name, a symbol,
and two names that it wants, and must say the symbols of both. The block is a real one: embeddings,
norms, residual connections, a feed-forward network.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.feed_forward import FeedForward
from course_lib.instruments import training
from course_lib.multi_head import MultiHeadAttention

LESSON = "06"
SEEDS = (0, 1, 2)

HEADS = (1, 2, 4, 8, 16, 32)
RATES = (0.001, 0.003, 0.01, 0.03)
SETTINGS = {"names": 16, "symbols": 16, "d_model": 64, "batch": 32, "steps": 1000}
TESTED = 1000  # sentences


def measure() -> dict:
    """Return the share of right symbols for each number of heads and each learning rate."""
    return {
        "settings": SETTINGS,
        "heads": list(HEADS),
        "rates": list(RATES),
        "right": [[[right(h, rate, seed) for seed in SEEDS] for rate in RATES] for h in HEADS],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{heads:3} heads, rate {rate:5}" + "".join(f"{share:8.3f}" for share in shares)
        for heads, rows in zip(figures["heads"], figures["right"], strict=True)
        for rate, shares in zip(figures["rates"], rows, strict=True)
    ]


class Block(nn.Module):
    """Embeddings, one pre-norm block, and a linear readout of two symbols."""

    def __init__(self, heads: int):
        super().__init__()
        d_model, names, symbols = (SETTINGS[key] for key in ("d_model", "names", "symbols"))
        self.own, self.first, self.second = (nn.Embedding(names, d_model) for _ in range(3))
        self.symbol = nn.Embedding(symbols, d_model)
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, 4 * d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))
        self.readout = nn.Linear(d_model, 2 * symbols)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of both symbols: (batch, n, 2, symbols)."""
        own, first, second, symbol = tokens.unbind(-1)
        x = self.own(own) + self.first(first) + self.second(second) + self.symbol(symbol)
        normed = self.norms[0](x)
        x = x + self.attention(normed, normed, normed)
        x = x + self.feed_forward(self.norms[1](x))
        return self.readout(self.norms[2](x)).unflatten(-1, (2, -1))


def sentences(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw tokens (own name, two wanted, symbol) and the two symbols that each must say."""
    names, symbols = SETTINGS["names"], SETTINGS["symbols"]
    own = torch.rand(batch, names, generator=generator).argsort(-1)
    wanted = torch.rand(batch, names, names, generator=generator).argsort(-1)[..., :2]
    symbol = torch.randint(symbols, (batch, names), generator=generator)
    of_name = symbol.gather(-1, own.argsort(-1))
    found = of_name.gather(-1, wanted.flatten(1)).view(batch, names, 2)
    return torch.stack([own, *wanted.unbind(-1), symbol], dim=-1), found


def cross_entropy(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the symbols, in nats."""
    tokens, found = batch
    return F.cross_entropy(model(tokens).flatten(0, 2), found.flatten())


def drawn(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw batches without an end."""
    while True:
        yield sentences(SETTINGS["batch"], generator)


def right(heads: int, rate: float, seed: int) -> float:
    """Train a block; return the share of symbols that it says right in new sentences."""
    generator = torch.Generator().manual_seed(seed)
    with training.seeded(seed):
        model = Block(heads)
    settings = {"steps": SETTINGS["steps"], "learning_rate": rate, "seed": seed}
    training.train(model, drawn(generator), cross_entropy, **settings)
    tokens, found = sentences(TESTED, torch.Generator().manual_seed(1000))
    with torch.no_grad():
        return (model(tokens).argmax(-1) == found).float().mean().item()
