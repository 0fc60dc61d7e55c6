"""Lessons 13 and 14: which attention finds a needle in a text, how far back, and how soon."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import characters
from course_lib.efficient.bigbird import PARTS, bigbird_mask, neighbours
from course_lib.efficient.variants import VARIANTS
from course_lib.instruments import training
from course_lib.multi_head import MultiHeadAttention
from course_lib.transformer import Encoder, EncoderBlock

LESSON = "13"
SEEDS = (0, 1, 2)

MODEL = {"layers": 2, "d_model": 32, "heads": 2, "d_ff": 128}
BUDGET = {"steps": 1200, "learning_rate": 0.005}
N, BATCH = 128, 8
MARKS = 10  # what a needle may say
EVERY = 100  # steps from one look at the share found to the next
TESTED, GLANCED = 32, 4  # texts for each distance: at the end, and on the way
DISTANCES = list(range(2, N, 4))  # one in each block

BLOCK = 4
ROWS = ("dense", *PARTS, "linear", "Linformer", "memory-compressed", "LSH")


def measure() -> dict:
    """Return the runs by row and seed, with one needle in a text."""
    return {
        "model": MODEL,
        "budget": BUDGET,
        "n": N,
        "batch": BATCH,
        "distances": DISTANCES,
        "every": EVERY,
        "one": {name: [run(name, 1, seed) for seed in SEEDS] for name in ROWS},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    steps, every = figures["budget"]["steps"], figures["every"]
    lines = [f"share found after {steps} steps, and steps until it was 0.9, seed by seed"]
    for name, runs in figures["one"].items():
        lines.append(f"{name:18}")
        for one in runs:
            reached = [every * i for i, share in enumerate(one["curve"]) if share >= 0.9]
            lines[-1] += f"   {one['curve'][-1]:.2f} {reached[0] if reached else 'never':>5}"
    return lines


def seen(part: str) -> Tensor:
    """Return which words see which by one part of BigBird's pattern, or by several."""
    return bigbird_mask(neighbours(N // BLOCK, *PARTS[part], seed=0), BLOCK)


def dense(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend by torch's function: a part is dense attention under its mask, to the last digit."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def attention(name: str) -> Callable[[int, int], nn.Module]:
    """Return what makes a row's layer: attention(d_model, heads)."""
    if name in VARIANTS and name not in PARTS:
        variant = VARIANTS[name]
        rule = variant.set_up(variant.experiment, N, MODEL["d_model"] // MODEL["heads"])
        return partial(variant.layer, rule=rule)
    mask = seen(name) if name in PARTS else None
    return partial(MultiHeadAttention, rule=lambda q, k, v, _=None: dense(q, k, v, mask))


class Reader(nn.Module):
    """An encoder that scores, at the last place, every sign that a needle may bear."""

    def __init__(self, vocab: int, attention: Callable):
        super().__init__()
        block = partial(EncoderBlock, attention=attention)
        self.encoder = Encoder(vocab, **MODEL, max_length=N, norm="pre", block=block)
        self.answer = nn.Linear(MODEL["d_model"], MARKS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scores (batch, marks)."""
        return self.answer(self.encoder(tokens)[:, -1])


def needles(
    text: Tensor, number: int, distance: int | None, size: int, seed: int, nearest: int = 1
) -> Iterator:
    """Yield texts with `number` needles, each of another colour, and the mark of the one asked for.

    The last token asks for a colour. That needle is `distance` places before it, or anywhere, as
    often from 1 to 2 places before it as from 50 to 100, but no nearer than `nearest`; the others
    are anywhere.
    """
    generator = torch.Generator().manual_seed(seed)
    vocab = len(characters.vocab())
    for tokens, _ in characters.batches(text, N, size, seed):
        marks = torch.randint(MARKS, (size, number), generator=generator)
        # different places for all, and the first needle's at its distance
        places = torch.rand(size, N - 1, generator=generator).argsort(-1)[:, :number]
        share = torch.rand(size, generator=generator)
        back = (nearest * (N / nearest) ** share).long().clamp(nearest, N - 1)
        wanted = N - 1 - (back if distance is None else torch.full_like(back, distance))
        taken = places == wanted.unsqueeze(-1)
        places = torch.where(taken, places[:, :1], places)
        places[:, 0] = wanted
        # the colours are dealt anew, or the first would always be asked for
        colours = torch.rand(size, number, generator=generator).argsort(-1)
        tokens = tokens.scatter(1, places, vocab + MARKS * colours + marks)
        tokens[:, -1] = vocab + MARKS * number + colours[:, 0]
        yield tokens, marks[:, 0]


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the marks, in nats."""
    tokens, marks = batch
    return F.cross_entropy(model(tokens), marks)


@torch.no_grad()
def shares(model: nn.Module, number: int, texts: int) -> list[float]:
    """Return the share of held-out texts in which the right mark gets the most, by distance."""
    _, held_out = characters.split()
    return [
        (model(tokens).argmax(-1) == marks).float().mean().item()
        for distance in DISTANCES
        for tokens, marks in [next(needles(held_out, number, distance, texts, 1 + distance))]
    ]


def run(name: str, number: int, seed: int, *, rate: float | None = None, nearest: int = 1) -> dict:
    """Train one model; return the share found over the steps, and at the end by distance."""
    start, curve = time.process_time(), []
    vocab = len(characters.vocab()) + MARKS * number + number
    with training.seeded(seed):
        model = Reader(vocab, attention(name))

    def watched() -> Iterator:
        learning, _ = characters.split()
        for step, batch in enumerate(needles(learning, number, None, BATCH, seed, nearest)):
            if step % EVERY == 0:
                found = shares(model, number, GLANCED)
                curve.append(round(sum(found) / len(found), 3))
            yield batch

    budget: dict[str, Any] = BUDGET | ({} if rate is None else {"learning_rate": rate})
    training.train(model, watched(), loss, seed=seed, **budget)
    found = [round(share, 3) for share in shares(model, number, TESTED)]
    curve.append(round(sum(found) / len(found), 3))
    return {"curve": curve, "found": found, "cpu": round(time.process_time() - start, 1)}
