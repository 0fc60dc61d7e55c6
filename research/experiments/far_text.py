"""Lesson 04: does a rotary model with slower hands use what is far, where the answer is far?

A model is trained on 32 characters that repeat what they began with, so it learns to look back for
what comes next. Then it is trained for 50 steps on 256 characters whose second half repeats the
first: as it was, with distances above 31 read as 31, and with slower hands.
"""

from collections.abc import Iterator
from functools import partial
from statistics import mean

import torch
from torch import Tensor

from course_lib.data import characters
from course_lib.instruments import results, training
from course_lib.instruments.position_models import (
    CausalModel,
    loss_by_window,
    loss_of_the_last,
    next_token_loss,
)
from course_lib.instruments.position_schemes import Rotary
from course_lib.positions import rotary
from research.experiments import unseen_distances as unseen

LESSON = "04"
SEEDS = (0, 1, 2)
N, LONGEST = unseen.N, unseen.LONGEST  # characters: trained on, read
PERIODS = (4, 16)  # characters after which a short text repeats itself
SETTINGS = unseen.SETTINGS | {"periods": PERIODS}
WAYS = {
    "as it was": (rotary, None),
    "clamped": (rotary, N - 1),
    "slowed": (unseen.SLOWED, None),
}


def short(seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw texts of N characters that repeat themselves, each after a number of its own."""
    generator = torch.Generator().manual_seed(seed)
    for read, following in characters.batches(characters.split()[0], N, N, seed):
        texts = torch.cat([read, following[:, -1:]], dim=-1)
        period = torch.randint(PERIODS[0], PERIODS[1] + 1, (len(texts), 1), generator=generator)
        texts = texts.gather(1, torch.arange(N + 1) % period)
        yield texts[:, :-1], texts[:, 1:]


def twice(texts: Tensor) -> Tensor:
    """Say the first half of each text once more, and one character again for the last target."""
    half = texts[:, : LONGEST // 2]
    return torch.cat([half, half, half[:, :1]], dim=-1)


def long(seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw texts of LONGEST characters whose second half repeats the first."""
    halves = characters.batches(characters.split()[0], LONGEST // 2, unseen.BATCH // LONGEST, seed)
    for read, _ in halves:
        texts = twice(read)
        yield texts[:, :-1], texts[:, 1:]


def measure_one(seed: int) -> dict[str, list[float]]:
    """Train a model on short texts, tune it in each way, and return its losses by window."""
    read, scheme = twice(unseen.texts()), Rotary()
    with training.seeded(seed):
        model = CausalModel(scheme, len(characters.vocab()))
    training.train(model, short(seed), next_token_loss, seed=seed, **unseen.TRAINING)
    learned = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    losses = {}
    for name, (scheme.turn, scheme.clamp) in WAYS.items():
        model.load_state_dict(learned)
        training.train(model, long(seed + 100), next_token_loss, seed=seed, **unseen.TUNING)
        losses[name] = loss_by_window(model, read).tolist()
    losses[f"{name}, last {N} shown"] = loss_of_the_last(model, read).tolist()
    return losses


def measure() -> dict:
    """Return the loss by window of N characters, for each seed and way of reading."""
    runs = [
        results.once("far_text", SETTINGS, str(seed), partial(measure_one, seed)) for seed in SEEDS
    ]
    return {"trained on": N, "window": N, "settings": SETTINGS, "runs": runs}


def in_the_repetition(losses: list[float]) -> float:
    """Return the mean loss of the text's second half."""
    return mean(losses[-(LONGEST // 2 // N) :])


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    runs = figures["runs"]
    return [
        f"{name:28}" + "".join(f"{in_the_repetition(run[name]):7.2f}" for run in runs)
        for name in runs[0]
    ]
