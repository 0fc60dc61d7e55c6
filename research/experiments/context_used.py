"""Lesson 10: how much of its context does each model use?

Counting, the page's live model, and the trained weights predict the same held-out characters.
By position: the mean loss at each place of windows that each begin anew. By context kept: the loss
after a window's last character, when all but its last k are those of a window from elsewhere.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.corpus import NGrams
from course_lib.instruments import results, training
from course_lib.language_model import LanguageModel, examples
from course_lib.pretrained import shakespeare_model
from course_lib.transformer import EncoderBlock
from research.experiments.language_model import mean_loss, split
from research.experiments.recipes import Predictor

LESSON = "10"
SEEDS = (0, 1, 2)
KEPT = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128)
LONGEST, STRIDE = 128, 32
LIVE = {"layers": 2, "d_model": 96, "heads": 4, "d_ff": 384, "max_length": 64}
STEPS, BATCH, RATE = 600, 16, 0.006

SETTINGS = {"kept": KEPT, "stride": STRIDE, "live": LIVE, "training": [STEPS, BATCH, RATE]}
once = partial(results.once, "context_used", SETTINGS)
LogProbabilities = Callable[[Tensor], Tensor]


def replaced(windows: Tensor, kept: int) -> Tensor:
    """Return the windows with all but their last tokens from windows that are far away."""
    mixed = windows.roll(len(windows) // 2, dims=0)
    mixed[:, -kept:] = windows[:, -kept:]
    return mixed


@torch.no_grad()
def with_context(model: LogProbabilities, n: int, held_out: Tensor, kept: int) -> float:
    """Return the loss after the last of n tokens, of which so many were kept."""
    read, following = examples(held_out, LONGEST, STRIDE)
    parts = replaced(read[:, -n:], kept).split(64)
    last = torch.cat([model(part)[:, -1] for part in parts])
    return round(F.cross_entropy(last, following[:, -1]).item(), 4)


def by_context(model: LogProbabilities, n: int, held_out: Tensor) -> dict[str, float]:
    """Return these losses by how many tokens were kept."""
    return {str(kept): with_context(model, n, held_out, kept) for kept in KEPT if kept <= n}


@torch.no_grad()
def by_position(model: LogProbabilities, n: int, held_out: Tensor) -> list[float]:
    """Return the mean loss at each position of windows of n tokens."""
    read, following = examples(held_out, n, n)
    losses = [
        F.cross_entropy(model(x).mT, y, reduction="none")
        for x, y in zip(read.split(64), following.split(64), strict=True)
    ]
    return [round(loss, 3) for loss in torch.cat(losses).mean(0).tolist()]


def both(model: LogProbabilities, n: int) -> dict[str, Any]:
    """Measure in both ways."""
    _, held_out, _ = split()
    return {
        "by_context": by_context(model, n, held_out),
        "by_position": by_position(model, n, held_out),
    }


def counting() -> dict[str, Any]:
    """Measure the table of counts."""
    tokens, _, vocab = split()
    table = NGrams(tokens, len(vocab))
    return both(lambda tokens: table.probabilities(tokens).log(), LONGEST)


def live(seed: int) -> dict[str, Any]:
    """Train the model of the page, and measure it."""
    tokens, held_out, vocab = split()
    inputs, targets = examples(tokens, LIVE["max_length"], LIVE["max_length"])

    def batch(step: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(step)
        rows = torch.randint(len(inputs), (BATCH,), generator=generator)
        return inputs[rows], targets[rows]

    def loss(model: LanguageModel, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch[0]).mT, batch[1])

    with training.seeded(seed):
        model = LanguageModel(len(vocab), *LIVE.values(), block=EncoderBlock)
    batches = (batch(step) for step in range(STEPS))
    budget = {"steps": STEPS, "seconds": 300, "learning_rate": RATE}
    training.train(model, batches, loss, **budget)
    n = LIVE["max_length"]
    return {"loss": round(mean_loss(Predictor(model, n), held_out), 4), **both(model, n)}


def trained() -> dict[str, Any]:
    """Measure the model whose weights are kept; each part of it by itself, since it takes long."""
    loaded, (_, held_out, _) = shakespeare_model.load(), split()

    def model(tokens: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):  # as it was trained, and much faster
            return loaded(tokens).float()

    contexts = {
        str(kept): once(f"trained, {kept}", partial(with_context, model, LONGEST, held_out, kept))
        for kept in KEPT
    }
    positions = once("trained, by position", partial(by_position, model, LONGEST, held_out))
    return {"by_context": contexts, "by_position": positions}


def measure() -> dict[str, Any]:
    """Return the figures of counting, of three live models, and of the trained one."""
    torch.set_num_threads(1)
    found = {"counting": once("counting", counting), "trained": trained()}
    found["live"] = {str(seed): once(f"live, seed {seed}", partial(live, seed)) for seed in SEEDS}
    return found


def table(figures: dict[str, Any]) -> list[str]:
    """Return a line for each model: its loss by characters kept."""
    lines = [f"{'characters kept':16}" + "".join(f"{kept:7}" for kept in KEPT)]
    rows = {name: figures[name] for name in ("counting", "trained")}
    rows |= {f"live, seed {seed}": run for seed, run in figures["live"].items()}
    for name, run in rows.items():
        losses = "".join(f"{loss:7.3f}" for loss in run["by_context"].values())
        lines.append(f"{name:16}{losses}")
    return lines
