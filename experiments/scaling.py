"""Lesson 12: the held-out loss against parameters and tokens.

Each point is a training of its own, with a learning rate that falls to 0 at its end.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from course_lib.data import characters
from course_lib.instruments import results, training
from course_lib.language_model import LanguageModel, cross_entropy
from course_lib.scaling import estimate_parameters, training_flops

LESSON = "12"
SEEDS = (0, 1, 2)
LAYERS, CONTEXT, BATCH, RATE = 2, 64, 32, 5e-3
SIZES = (8, 16, 24, 32)  # d_model of what a law is fitted to
LARGER = 64  # four times the parameters, which no fit has seen
STEPS = (200, 800)
HELD_OUT = 1024  # windows of the held-out tenth, the same for all

SETTINGS = {"layers": LAYERS, "context": CONTEXT, "batch": BATCH, "rate": RATE}
once = partial(results.once, "scaling", SETTINGS)  # what an ended run has measured is kept


def measure() -> dict:
    """Return one row for each training."""
    rows = [once(str(one), partial(run, **one)) for one in _wanted()]
    return {"settings": SETTINGS, "rows": rows}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"d = {row['d']:3}, N = {row['parameters']:7,}, {row['steps']:5} steps, "
        f"seed {row['seed']}: {row['loss']:.3f}"
        for row in figures["rows"]
    ]


def _wanted() -> Iterator[dict]:
    """Name every training, the longest runs of the fitted sizes first."""
    shapes = [(d, STEPS[-1]) for d in (*SIZES, LARGER)] + [(d, STEPS[0]) for d in SIZES]
    for (d, steps), seed in itertools.product(shapes, SEEDS):
        yield {"d": d, "steps": steps, "seed": seed}


def run(d: int, steps: int, seed: int) -> dict:
    """Train one model; return its size, its operations, its loss and its seconds."""
    start = time.process_time()
    learning, held_out = characters.split()
    with training.seeded(seed):
        model = LanguageModel(len(characters.vocab()), LAYERS, d, d // 8, 4 * d, CONTEXT)
    batches = characters.batches(learning, CONTEXT, BATCH, seed)
    rate = RATE * (32 / d) ** 0.5
    history = training.train(model, batches, _loss, steps=steps, learning_rate=rate, seed=seed)
    assert history.complete
    with torch.no_grad():
        loss = _loss(model, next(characters.batches(held_out, CONTEXT, HELD_OUT, 0))).item()
    parameters, tokens = estimate_parameters(LAYERS, d, d, 4 * d), steps * BATCH * CONTEXT
    row = {
        "d": d,
        "steps": steps,
        "seed": seed,
        "parameters": parameters,
        "tokens": tokens,
        "flops": training_flops(parameters, tokens, LAYERS, CONTEXT, d),
        "loss": round(loss, 4),
        "cpu_seconds": round(time.process_time() - start, 1),
    }
    print(row, flush=True)
    return row


def _loss(model: Callable[[Tensor], Tensor], batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next characters, in nats."""
    tokens, following = batch
    return cross_entropy(model(tokens), following)
