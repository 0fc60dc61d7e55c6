"""Lesson 06: two letters to look up at once, by a real block with 1 to 32 heads.

A token has a name, a letter, and the names of two others; it must say both their letters, in order.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import pointers
from course_lib.encoder import EncoderBlock
from course_lib.instruments import training

LESSON = "06"
SEEDS = (0, 1, 2)

HEADS = (1, 2, 4, 8, 16, 32)
RATES = (0.001, 0.003, 0.01, 0.03)
# heads, rate and steps of runs that go on
LONGER = ((1, 0.003, 1500), (1, 0.001, 3000), (16, 0.001, 2400), (32, 0.003, 1800))
SETTINGS = {"d_model": 64, "n": 16, "letters": 20, "batch": 64, "steps": 600}


class Block(nn.Module):
    """Embeddings, one pre-norm block, and a readout of both letters."""

    def __init__(self, heads: int):
        super().__init__()
        d_model, n, letters = (SETTINGS[name] for name in ("d_model", "n", "letters"))
        self.tables = nn.ModuleList(nn.Embedding(size, d_model) for size in (n, letters, n, n))
        self.block = EncoderBlock(d_model, heads, 4 * d_model, "pre")
        self.norm, self.readout = nn.LayerNorm(d_model), nn.Linear(d_model, 2 * letters)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the two letters: (batch, n, 2, letters)."""
        columns = zip(self.tables, tokens.unbind(-1), strict=True)
        x = torch.stack([table(column) for table, column in columns]).sum(0)
        return self.readout(self.norm(self.block(x))).unflatten(-1, (2, -1))


def lines(size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield tokens and the letters that they want, without end."""
    generator, n, letters = torch.Generator().manual_seed(seed), SETTINGS["n"], SETTINGS["letters"]
    while True:
        yield pointers.two_letters(size, n, letters, generator=generator)


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross-entropy of both letters."""
    tokens, found = batch
    return F.cross_entropy(model(tokens).flatten(0, 2), found.flatten())


def measure_one(
    heads: int, rate: float, seed: int, steps: int = SETTINGS["steps"]
) -> dict[str, float]:
    """Train one block; return the share of letters named right, and right in either order."""
    with training.seeded(seed):
        model = Block(heads)
    training.train(
        model, lines(SETTINGS["batch"], seed), loss, steps=steps, learning_rate=rate, seed=seed
    )
    tokens, found = next(lines(500, 1000 + seed))
    with torch.no_grad():
        logits = model(tokens)
    said = logits.argmax(-1)
    # the two likeliest letters of both answers together
    pair = logits.softmax(-1).sum(-2).topk(2).indices.sort(-1).values
    differ = found[..., 0] != found[..., 1]
    either = (pair == found.sort(-1).values).all(-1)[differ]
    return {
        "right": (said == found).float().mean().item(),
        "pair": either.float().mean().item(),
    }


def go_on(heads: int, rate: float, steps: int) -> dict:
    """Return the runs of an arm that trains for longer."""
    runs = [measure_one(heads, rate, seed, steps) for seed in SEEDS]
    return {"heads": heads, "rate": rate, "steps": steps, "runs": runs}


def measure() -> dict:
    """Return what came, by heads, rate and seed."""
    return {
        "settings": SETTINGS,
        "heads": list(HEADS),
        "rates": list(RATES),
        "runs": [
            [[measure_one(heads, rate, seed) for seed in SEEDS] for rate in RATES]
            for heads in HEADS
        ],
        "longer": [go_on(*arm) for arm in LONGER],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    rows = ["share of letters right, by learning rate, three seeds each; the pair in either order"]
    for heads, by_rate in zip(figures["heads"], figures["runs"], strict=True):
        shown = (
            " ".join(f"{run['right']:.2f}" for run in runs) + f" ({runs[0]['pair']:.2f})"
            for runs in by_rate
        )
        rows.append(f"{heads:3} heads   " + "   ".join(shown))
    for arm in figures["longer"]:
        shown = " ".join(f"{run['right']:.2f}" for run in arm["runs"])
        rows.append(f"{arm['heads']:3} heads, rate {arm['rate']}, {arm['steps']} steps: {shown}")
    return rows
