"""Lesson 12: the held-out loss against parameters and tokens.

Each point is a training of its own, with a learning rate that falls to 0 at its end. A run can be
ended at any time: what is in results/scaling.json is not measured again.
"""

import itertools
import time
from collections.abc import Callable, Iterator

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


def measure() -> dict:
    """Return one row for each training."""
    wanted = list(_wanted())
    rows = [row for row in _kept() if any(one.items() <= row.items() for one in wanted)]
    for i, row in enumerate(wanted):
        if not any(row.items() <= kept.items() for kept in rows):
            start = time.process_time()
            done = row | _train(**row)
            rows.append(done | {"cpu_seconds": round(time.process_time() - start, 1)})
            print(f"{i + 1} of {len(wanted)}: {rows[-1]}", flush=True)
            _keep(rows)
    return {"settings": _settings(), "rows": rows}


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


def _train(d: int, steps: int, seed: int) -> dict:
    """Train one model; return its size, its operations and its losses."""
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
    flops = training_flops(parameters, tokens, LAYERS, CONTEXT, d)
    return {"parameters": parameters, "tokens": tokens, "flops": flops, "loss": round(loss, 4)}


def _loss(model: Callable[[Tensor], Tensor], batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next characters, in nats."""
    tokens, following = batch
    return cross_entropy(model(tokens), following)


def _settings() -> dict:
    return {"layers": LAYERS, "context": CONTEXT, "batch": BATCH, "rate": RATE}


def _kept() -> list[dict]:
    """Return the rows of an earlier run with these settings."""
    try:
        figures = results.load("scaling")["figures"]
    except FileNotFoundError:
        return []
    return figures["rows"] if figures["settings"] == _settings() else []


def _keep(rows: list[dict]) -> None:
    """Write what there is so far."""
    seconds = sum(row["cpu_seconds"] for row in rows)
    seeds = sorted({row["seed"] for row in rows})
    figures = {"settings": _settings(), "rows": rows}
    command = f"make results LESSON={LESSON}"
    results.save("scaling", figures, command=command, seeds=seeds, seconds=seconds)
