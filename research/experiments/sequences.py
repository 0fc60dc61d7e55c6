"""Lesson 08: a small Transformer sorts letters, a faulty loss spoils it, and repeats break it.

One control is beside each: the same model trained where letters repeat, and trained where it can
read what it must predict, by the faulty loss or for want of a mask.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.instruments import results, training
from course_lib.transformer import Transformer, greedy, next_token_loss
from course_lib.xray import without_mask

LESSON = "08"
SEEDS = (0, 1, 2)

LETTERS, N = 26, 8
START, STOP = LETTERS, LETTERS + 1
MODEL: dict[str, Any] = {"vocab": LETTERS + 2, "layers": 2, "d_model": 64, "heads": 4, "d_ff": 256}
TRAINING = {"batch": 32, "steps": 600, "rate": 0.003}
TESTED = 1000  # sequences, of which hardly one has been seen: there are 26 x 25 x ... x 19

Drawn = Callable[[int, torch.Generator], Tensor]
Loss = Callable[[Any, Tensor, Tensor, int], Tensor]


def different(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight different letters."""
    return torch.rand(batch, LETTERS, generator=generator).argsort(-1)[:, :N]


def any_letters(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight letters, each of which may come again."""
    return torch.randint(0, LETTERS, (batch, N), generator=generator)


def repeating(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight letters, of which one at least comes again."""
    drawn = any_letters(8 * batch, generator)
    again = (in_order(drawn).diff(dim=-1) == 0).any(-1)
    return drawn[again][:batch]


def in_order(letters: Tensor) -> Tensor:
    """Return the letters in alphabetical order."""
    return letters.sort(-1).values


def peeking_loss(model: nn.Module, source: Tensor, target: Tensor, start: int) -> Tensor:
    """Return the loss of a program with a fault: all letters but the first are read before."""
    first = torch.full_like(target[..., :1], start)
    read = torch.cat([first, target[..., 1:]], dim=-1)
    return F.cross_entropy(model(source, read).flatten(0, -2), target.flatten())


ARMS = {"sort": different, "sort, letters repeat": any_letters}


def measure() -> dict:
    """Return, by what is drawn and seed, what is written right, and the losses."""
    settings = MODEL | TRAINING

    def kept(name: str, make: Callable[[int], dict]) -> list[dict]:
        return [
            results.once("sequences", settings, f"{name} {seed}", lambda seed=seed: make(seed))
            for seed in SEEDS
        ]

    return {
        "settings": settings,
        "tested": TESTED,
        "runs": {name: kept(name, partial(run, drawn)) for name, drawn in ARMS.items()},
        "unshifted": kept("unshifted", peeking),
        "unmasked": kept("unmasked", unmasked),
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [
        f"{name:21} {run['right']:.1%} right; where letters repeat: {run['repeating']:.1%}"
        for name, runs in figures["runs"].items()
        for run in runs
    ]
    for run in figures["unshifted"]:
        shares = f"{run['right']:.1%} right, {run['one letter']:.1%} one letter"
        lines.append(f"reads what it predicts: {shares}; last loss {run['losses'][-1]:.4f}")
    for run in figures["unmasked"]:
        shares = f"{run['right']:.1%} right, {run['again']:.0%} of letters are the one before"
        lines.append(f"decoder without a mask: {shares}; last loss {run['loss']:.4f}")
    return lines


def batches(drawn: Drawn, seed: int) -> Iterator[Tensor]:
    """Draw batches of sources without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield drawn(TRAINING["batch"], generator)


def trained(
    drawn: Drawn, loss: Loss, seed: int, change: Callable[[Any], Any] = lambda model: model
) -> tuple[Transformer, list[float]]:
    """Train a sorter, changed or not; return it and its mean loss over each ten steps."""
    with training.seeded(seed):
        model = change(Transformer(**MODEL, max_length=N + 1))
    history = training.train(
        model,
        batches(drawn, seed),
        lambda model, source: loss(model, source, in_order(source), START),
        steps=TRAINING["steps"],
        learning_rate=TRAINING["rate"],
        seed=seed,
    )
    return model, torch.tensor(history.losses).view(-1, 10).mean(-1).tolist()


def run(drawn: Drawn, seed: int) -> dict:
    """Train a sorter; return the shares that it writes right, and its mean losses."""
    model, losses = trained(drawn, next_token_loss, seed)
    generator = torch.Generator().manual_seed(TESTED)
    source, repeats = drawn(TESTED, generator), repeating(TESTED, generator)
    right, of_repeats = (
        _share(greedy(model, x, START, STOP, most=N) == in_order(x)) for x in (source, repeats)
    )
    return {"right": right, "repeating": of_repeats, "losses": losses}


def peeking(seed: int) -> dict:
    """Train a sorter by the faulty loss; return what it writes, and its mean losses."""
    model, losses = trained(different, peeking_loss, seed)
    source = different(TESTED, torch.Generator().manual_seed(TESTED))
    written = greedy(model, source, START, STOP, most=N)
    right, same = _share(written == in_order(source)), _share(written == written[:, :1])
    return {"right": right, "one letter": same, "losses": losses}


def unmasked(seed: int) -> dict:
    """Train a sorter that sees the whole target; return what it writes, and its last mean loss."""
    model, losses = trained(different, next_token_loss, seed, without_mask)
    source = different(TESTED, torch.Generator().manual_seed(TESTED))
    written = greedy(model, source, START, STOP, most=N)
    again = (written[:, 1:] == written[:, :-1]).float().mean().item()
    right = _share(written == in_order(source))
    return {"right": right, "again": round(again, 2), "loss": round(losses[-1], 4)}


def _share(holds: Tensor) -> float:
    """Return the share of rows in which every letter holds."""
    return holds.all(-1).float().mean().item()
