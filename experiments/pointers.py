"""Lesson 03: which matrices the pointer task needs, with less and with more training."""

from itertools import repeat
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.data import pointers
from course_lib.instruments import results, training
from course_lib.self_attention import SelfAttention, parameter_free

LESSON = "03"
SEEDS = (0, 1, 2)
STEPS = (500, 2000)
RATES = (0.003, 0.01, 0.03, 0.1)
D_MODEL, D_K, D_V = 2 * pointers.NAMES + 1, 8, 4
D_GRU = 32
BATCH, TESTED = 64, 100_000
SETTINGS = {
    "steps": STEPS,
    "rates": RATES,
    "d_k": D_K,
    "d_v": D_V,
    "d_gru": D_GRU,
    "batch": BATCH,
    "tested": TESTED,
}


class VersionOne(nn.Module):
    """Attention without parameters."""

    def forward(self, x: Tensor) -> Tensor:
        """Average the tokens by their similarity."""
        return parameter_free(x)


class Shared(SelfAttention):
    """One matrix for queries and keys."""

    def __init__(self):
        super().__init__(D_MODEL, D_K, D_V)
        self.w_k = self.w_q


class NoValues(SelfAttention):
    """Queries and keys of their own; a value is the token as it is."""

    def __init__(self):
        super().__init__(D_MODEL, D_K, D_MODEL)
        self.w_v = nn.Parameter(torch.eye(D_MODEL), requires_grad=False)


class Recurrent(nn.Module):
    """Two layers of a bidirectional GRU: what lesson 01 would use."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(D_MODEL, D_GRU, 2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Read the sentence from both ends, twice."""
        return self.gru(x)[0]


class BesideItself(nn.Module):
    """What attention returns, and the token itself beside it, as a residual connection keeps it."""

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor) -> Tensor:
        """Attend, and keep the token."""
        return torch.cat([self.attention(x), x], dim=-1)


# what attends, and the size of what it returns
ARMS: dict[str, Any] = {
    "version 1": (VersionOne, D_MODEL),
    "one shared matrix": (Shared, D_V),
    "shared, and the token itself": (lambda: BesideItself(Shared()), D_V + D_MODEL),
    "separate queries and keys": (NoValues, D_MODEL),
    "bidirectional GRU": (Recurrent, 2 * D_GRU),
    "three matrices": (lambda: SelfAttention(D_MODEL, D_K, D_V), D_V),
}


def squared_error(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean squared error of the fetched numbers, whose variance is 1."""
    x, found = batch
    return (model(x) - found).square().mean()


def explained(arm: str, seed: int, steps: int, rate: float) -> float:
    """Train, and return the share of the numbers' variance that is explained in new sentences."""
    attention, d_out = ARMS[arm]
    generator = torch.Generator().manual_seed(seed)

    def drawn(batch: int) -> tuple[Tensor, Tensor]:
        return pointers.sentences(batch, generator=generator)

    with training.seeded(seed):
        model = nn.Sequential(attention(), nn.Linear(d_out, 1))
    batches = map(drawn, repeat(BATCH))
    training.train(model, batches, squared_error, steps=steps, learning_rate=rate)
    x, found = pointers.sentences(TESTED, generator=torch.Generator().manual_seed(1000))
    with torch.no_grad():
        return 1 - (squared_error(model, (x, found)) / found.square().mean()).item()


def measure() -> dict:
    """Return for each arm, steps and learning rate the share explained, for each seed."""
    runs: dict[str, Any] = {arm: {} for arm in ARMS}
    for arm in ARMS:
        for steps in STEPS:
            for rate in RATES:
                runs[arm][f"{steps} steps, rate {rate}"] = [
                    results.once(
                        "pointers",
                        SETTINGS,
                        f"{arm}, {steps}, {rate}, {seed}",
                        lambda arm=arm, seed=seed, steps=steps, rate=rate: explained(
                            arm, seed, steps, rate
                        ),
                    )
                    for seed in SEEDS
                ]
    return {"settings": SETTINGS, "explained": runs}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for arm, runs in figures["explained"].items():
        lines.append(arm)
        for setting, shares in runs.items():
            lines.append(f"    {setting:24}" + "".join(f"{share:8.3f}" for share in shares))
    return lines
