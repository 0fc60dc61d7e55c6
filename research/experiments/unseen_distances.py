"""Lesson 04: a rotary model that was trained on 32 characters reads 256, in several ways.

Is it the distances that it has never seen? They are taken away (clamped), and put into the training
of a second model, which reads 32 characters as well, but with a gap in their positions.
"""

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
from course_lib.instruments.position_schemes import Rotary, interpolated
from course_lib.positions import rotary

LESSON = "04"
SEEDS = (0, 1, 2)
N, LONGEST = 32, 256  # characters: trained on, read
BATCH = 32 * N  # characters a step
TRAINING = {"steps": 600, "learning_rate": 0.01}
TUNING = {"steps": 50, "learning_rate": 0.003}  # on LONGEST characters
TESTED = 64  # texts
SETTINGS = {"batch": BATCH, "training": TRAINING, "tuning": TUNING, "tested": TESTED}
SLOWED = partial(interpolated, stretch=LONGEST / N, trained=N)


class Gapped(Rotary):
    """In training, let the positions of a text go on later, from a random one on.

    So N tokens meet distances up to LONGEST - 1. Source: after Zhu et al. 2024 (PoSE).
    """

    def __init__(self):
        super().__init__(lambda x, positions: rotary(x, positions + self.shift))

    def encode(self, x):
        """Draw one gap for the texts of a batch."""
        gap, start = torch.randint(LONGEST - N + 1, ()), torch.randint(1, N, ())
        self.shift = self.training * gap * (torch.arange(x.shape[-2]) >= start)
        return x


def texts() -> Tensor:
    """Return held-out texts, of LONGEST characters and one more."""
    _, held_out = characters.split()
    starts = torch.arange(TESTED).unsqueeze(-1) * (len(held_out) // TESTED - LONGEST)
    return held_out[starts + torch.arange(LONGEST + 1)]


def train(scheme: Rotary, seed: int) -> CausalModel:
    """Train a model on texts of N characters."""
    with training.seeded(seed):
        model = CausalModel(scheme, len(characters.vocab()))
    tune(model, N, seed, TRAINING)
    return model


def tune(model: CausalModel, n: int, seed: int, settings: dict) -> None:
    """Train on texts of n characters."""
    batches = characters.batches(characters.split()[0], n, BATCH // n, seed)
    training.train(model, batches, next_token_loss, seed=seed, **settings)


def measure_one(seed: int) -> dict[str, list[float]]:
    """Train two models, and read with the first in every way: the loss by window."""
    read = texts()
    scheme = Rotary()
    model = train(scheme, seed)
    losses = {"as it was": loss_by_window(model, read), "last 32": loss_of_the_last(model, read)}
    scheme.clamp = N - 1
    losses["clamped"] = loss_by_window(model, read)
    scheme.clamp = None
    learned = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, turn in {"slowed": SLOWED, "as it was": rotary}.items():
        model.load_state_dict(learned)
        scheme.turn = turn
        losses[name] = loss_by_window(model, read)
        tune(model, LONGEST, seed + 100, TUNING)
        losses[f"{name}, 50 steps"] = loss_by_window(model, read)
    losses["gaps in training"] = loss_by_window(train(Gapped(), seed), read)
    return {name: loss.tolist() for name, loss in losses.items()}


def measure() -> dict:
    """Return the loss by window of 32 characters, for each seed and way of reading."""
    runs = [
        results.once("unseen_distances", SETTINGS, str(seed), partial(measure_one, seed))
        for seed in SEEDS
    ]
    return {"trained on": N, "window": N, "settings": SETTINGS, "runs": runs}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    runs, window = figures["runs"], figures["window"]
    ends = [window * (i + 1) for i in range(len(runs[0]["as it was"]))]
    lines = [f"{'loss up to character':24}" + "".join(f"{end:7}" for end in ends)]
    for name in runs[0]:
        columns = zip(*(run[name] for run in runs), strict=True)
        means = [sum(column) / len(runs) for column in columns]
        missing = " " * 7 * (len(ends) - len(means))
        lines.append(f"{name:24}{missing}" + "".join(f"{mean:7.2f}" for mean in means))
    return lines


def on_page(figures: dict) -> str:
    """Return the table of docs/RESULTS.md: the loss in four of the windows."""
    runs, ends = figures["runs"], (32, 64, 128, 256)
    first = f"nats in the {N} characters up to"
    lines = [f"| {first} | {' | '.join(map(str, ends))} |", "|:-|-:|-:|-:|-:|"]
    for name in runs[0]:
        # some ways of reading have no loss for the first windows
        by_window = map(mean, zip(*(run[name][::-1] for run in runs), strict=True))
        losses = dict(zip(range(LONGEST, 0, -N), by_window, strict=False))
        shown = (f"{losses[end]:.2f}" if end in losses else "–" for end in ends)
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)
