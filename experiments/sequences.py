"""Lesson 08: a small Transformer copies, reverses and sorts letters that it has never seen so."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.instruments import training
from course_lib.masks import shift_right
from course_lib.transformer import Transformer, greedy

LESSON = "08"
SEEDS = (0, 1, 2)

LETTERS, N = 26, 8
START, STOP = LETTERS, LETTERS + 1
MODEL: dict[str, Any] = {"vocab": LETTERS + 2, "layers": 2, "d_model": 64, "heads": 4, "d_ff": 256}
TRAINING = {"batch": 32, "steps": 1200, "learning_rate": 0.003}
TESTED = 1000  # sequences, of which hardly one has been seen: there are 26 x 25 x ... x 19

TASKS = {
    "copy": lambda letters: letters,
    "reverse": lambda letters: letters.flip(-1),
    "sort": lambda letters: letters.sort(-1).values,
}


def measure() -> dict:
    """Return for each task and seed the share of sequences all right, and the losses on the way."""
    return {
        "settings": MODEL | TRAINING,
        "tested": TESTED,
        "runs": {task: [run(task, seed) for seed in SEEDS] for task in TASKS},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{task:8} seed {seed}: {run['right']:.1%} all right, {run['repeated']:.1%} where letters "
        f"may come twice; last loss {run['losses'][-1]:.4f}"
        for task, runs in figures["runs"].items()
        for seed, run in enumerate(runs)
    ]


def different(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight different letters."""
    return torch.rand(batch, LETTERS, generator=generator).argsort(-1)[:, :N]


def any_letters(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight letters, each of which may come again."""
    return torch.randint(0, LETTERS, (batch, N), generator=generator)


def pairs(task: str, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw batches of sources and targets without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        source = different(TRAINING["batch"], generator)
        yield source, TASKS[task](source)


def next_letter_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next letter, in nats."""
    source, target = batch
    scores = model(source, shift_right(target, START))
    return F.cross_entropy(scores.flatten(0, -2), target.flatten())


def run(task: str, seed: int) -> dict[str, float | list[float]]:
    """Train a model; return how many sequences it writes right, and its mean losses."""
    with training.seeded(seed):
        model = Transformer(**MODEL, max_length=N + 1, norm="pre")
    history = training.train(
        model,
        pairs(task, seed),
        next_letter_loss,
        steps=TRAINING["steps"],
        learning_rate=TRAINING["learning_rate"],
        seed=seed,
    )
    generator = torch.Generator().manual_seed(1000)
    tenths = torch.tensor(history.losses).view(-1, 10).mean(-1)
    return {
        "right": share_right(model, task, different(TESTED, generator)),
        "repeated": share_right(model, task, any_letters(TESTED, generator)),
        "losses": tenths.tolist(),
    }


def share_right(model: Transformer, task: str, source: Tensor) -> float:
    """Return the share of sequences that are written without one mistake."""
    written = greedy(model, source, START, STOP, most=N)
    return (written == TASKS[task](source)).all(-1).float().mean().item()
