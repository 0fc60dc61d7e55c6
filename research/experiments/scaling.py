"""Lesson 12: losses of several sizes at equal operations, and one prediction.

An IsoFLOP curve has one budget of operations, and on it small models that read much and large ones
that read little. Each point is a training of its own, with a learning rate that falls to 0 at its
end. Every size has at every budget the best of its own rates, by seed 0: halved or doubled until
the neighbours on both sides are worse.
"""

import math
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from course_lib.data import characters
from course_lib.instruments import results, training
from course_lib.instruments.isoflop import BATCH, CONTEXT, LAYERS, size, steps
from course_lib.language_model import LanguageModel, cross_entropy
from course_lib.scaling import choose_size

LESSON = "12"
SEEDS = (0, 1, 2)
RATE = 4e-2  # where each search begins
SIZES = {  # budget in operations -> d_model
    3e10: (8, 12, 16, 24, 32),
    1.2e11: (12, 16, 24, 32, 48),
    4.8e11: (16, 24, 32, 48, 64),
}
LARGER = 1.92e12  # the budget that no fit has seen
HELD_OUT = 1024  # windows of the held-out tenth, the same for all

SETTINGS = {"layers": LAYERS, "context": CONTEXT, "batch": BATCH, "held_out": HELD_OUT}
once = partial(results.once, "scaling", SETTINGS)  # what an ended run has measured is kept


def measure() -> dict:
    """Return one row for each training, those of the search too."""
    rows: list[dict] = []
    best: dict[tuple[float, int], float] = {}
    for budget, sizes in SIZES.items():
        for d in sizes:
            # the search begins at the best rate of this size at the budget before, if there is one
            start = best.get((budget / 4, d), RATE)
            best[budget, d], tried = _search(budget, d, start)
            rows += tried
    points = [
        trained(budget, d, best[budget, d], seed)
        for budget, sizes in SIZES.items()
        for seed in SEEDS
        for d in sizes
    ]
    # four times the largest budget: the size that the minima predict; its search begins at half
    # the rate of the nearest size, since the training is longer
    d = predicted_size(points)
    nearest = min(SIZES[LARGER / 4], key=lambda size: abs(size - d))
    rate, tried = _search(LARGER, d, best[LARGER / 4, nearest] / 2)
    return {
        "settings": SETTINGS,
        "rows": points,
        "larger": [trained(LARGER, d, rate, seed) for seed in SEEDS],
        "search": rows + tried,
        "pairs": pair_loss(),
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{row['flops']:.2e} operations, d = {row['d']:3}, N = {row['parameters']:7,}, "
        f"D = {row['tokens']:10,}, rate {row['rate']:.4f}, seed {row['seed']}: {row['loss']:.3f}"
        for row in figures["rows"] + figures["larger"]
    ]


def predicted_size(rows: list[dict]) -> int:
    """Return the d_model, a multiple of 8, whose N is nearest to the best one at LARGER."""
    runs = [(row["flops"], row["parameters"], row["loss"]) for row in rows]
    wanted = choose_size(runs, LARGER)
    return min(range(8, 257, 8), key=lambda d: abs(math.log(size(d) / wanted)))


def _search(budget: float, d: int, rate: float) -> tuple[float, list[dict]]:
    """Halve and double the rate of seed 0 until both neighbours of the best are worse.

    Of rates whose losses are within 0.005 of the best the lowest is taken: the highest is close to
    where another seed diverges.
    """
    tried = {factor: trained(budget, d, rate * 2.0**factor, 0) for factor in (0, 1)}
    while True:
        best = min(tried, key=lambda factor: tried[factor]["loss"])
        missing = [factor for factor in (best - 1, best + 1) if factor not in tried]
        if not missing:
            least = tried[best]["loss"] + 0.005
            alike = [row["rate"] for row in tried.values() if row["loss"] <= least]
            return min(alike), list(tried.values())
        tried |= {factor: trained(budget, d, rate * 2.0**factor, 0) for factor in missing}


def trained(budget: float, d: int, rate: float, seed: int) -> dict:
    """Train one model or remember it."""
    wanted = {"budget": budget, "d": d, "rate": rate, "seed": seed}
    return once(str(wanted), partial(run, **wanted))


def run(budget: float, d: int, rate: float, seed: int) -> dict:
    """Train one model; return its size, its tokens, its loss and its seconds."""
    start = time.process_time()
    learning, held_out = characters.split()
    taken = steps(budget, d)
    with training.seeded(seed):
        model = LanguageModel(len(characters.vocab()), LAYERS, d, max(1, d // 8), 4 * d, CONTEXT)
    batches = characters.batches(learning, CONTEXT, BATCH, seed)
    history = training.train(model, batches, _loss, steps=taken, learning_rate=rate, seed=seed)
    assert history.complete
    with torch.no_grad():
        loss = _loss(model, next(characters.batches(held_out, CONTEXT, HELD_OUT, 0))).item()
    row = {
        "flops": budget,
        "d": d,
        "rate": rate,
        "seed": seed,
        "parameters": size(d),
        "tokens": taken * BATCH * CONTEXT,
        "loss": round(loss, 4),
        "cpu_seconds": round(time.process_time() - start, 1),
    }
    print(row, flush=True)
    return row


def pair_loss() -> float:
    """Return the held-out loss of a table that knows only the character before."""
    learning, held_out = characters.split()
    vocab = len(characters.vocab())
    counts = torch.bincount(learning[:-1] * vocab + learning[1:], minlength=vocab * vocab)
    counts = counts.view(vocab, vocab) + 1.0
    tokens, following = next(characters.batches(held_out, CONTEXT, HELD_OUT, 0))
    chances = (counts / counts.sum(1, keepdim=True))[tokens, following]
    return round(-chances.log().mean().item(), 4)


def _loss(model: Callable[[Tensor], Tensor], batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next characters, in nats."""
    tokens, following = batch
    return cross_entropy(model(tokens), following)
