"""Lesson 06: two letters to look up at once, by a block with one head or several.

A token has a name, a letter, and the names of two others; it must say both their letters, in order.
"""

from functools import partial

import torch
from torch import Tensor, nn

from course_lib.data import pointers
from course_lib.feed_forward import FeedForward
from course_lib.instruments import pointer_models, results
from course_lib.multi_head import MultiHeadAttention

LESSON = "06"
SEEDS = (0, 1, 2)

HEADS = (1, 2, 8)
STEPS, LONGER = 300, 1500  # the second for one head alone
D_MODEL = 64


class Block(nn.Module):
    """The block of the lesson: embeddings, attention and a network, each added, and a readout.

    With `normed`, what enters each of the three is normalised first, as in lesson 07.
    """

    def __init__(self, heads: int, normed: bool = False):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, D_MODEL) for size in (16, 20, 16, 16))
        self.attention = MultiHeadAttention(D_MODEL, heads)
        self.feed_forward = FeedForward(D_MODEL, 4 * D_MODEL)
        self.readout = nn.Linear(D_MODEL, 2 * 20)
        norms = (nn.LayerNorm(D_MODEL) if normed else nn.Identity() for _ in range(3))
        self.norms = nn.ModuleList(norms)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the two letters: (batch, n, 2, letters)."""
        columns = zip(self.tables, tokens.unbind(-1), strict=True)
        x = torch.stack([table(column) for table, column in columns]).sum(0)
        first, second, last = self.norms
        seen = first(x)
        x = x + self.attention(seen, seen, seen)
        x = x + self.feed_forward(second(x))
        return self.readout(last(x)).unflatten(-1, (2, -1))


def right(heads: int, seed: int, steps: int, normed: bool = False) -> float:
    """Train one block; return the share of letters that it says rightly."""
    block = partial(Block, normed=normed)
    model = pointer_models.train_two_letters(block, heads, seed, steps=steps)
    generator = torch.Generator().manual_seed(1000 + seed)
    tokens, wanted = pointers.two_letters(500, generator=generator)
    with torch.no_grad():
        return (model(tokens).argmax(-1) == wanted).float().mean().item()


def measure() -> dict:
    """Return the shares by heads and seed, and those of one head that trains for longer."""

    def runs(heads: int, steps: int, normed: bool = False) -> list[float]:
        def each() -> list[float]:
            return [right(heads, seed, steps, normed) for seed in SEEDS]

        return results.once("heads", [D_MODEL], f"{heads} heads, {steps} steps, {normed}", each)

    return {
        "steps": STEPS,
        "right": {str(heads): runs(heads, STEPS) for heads in HEADS},
        "longer": {"steps": LONGER, "right": runs(1, LONGER), "normed": runs(1, LONGER, True)},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    rows = {f"{heads} heads, {figures['steps']} steps": x for heads, x in figures["right"].items()}
    longer = figures["longer"]
    rows[f"1 head, {longer['steps']} steps"] = longer["right"]
    rows["1 head, with norms"] = longer["normed"]
    return [f"{name:24}" + "".join(f"{share:7.3f}" for share in x) for name, x in rows.items()]
