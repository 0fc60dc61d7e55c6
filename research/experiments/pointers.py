"""Lesson 03: which matrices the pointer task needs, with less and with more training."""

from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.data import pointers
from course_lib.instruments import results
from course_lib.instruments.pointer_models import VersionOne, explained, train
from course_lib.self_attention import SelfAttention

LESSON = "03"
SEEDS = (0, 1, 2)
STEPS = (500, 2000)
RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
D_MODEL, D_K, D_V, D_GRU = 2 * pointers.NAMES + 1, 8, 4, 32
TESTED = 100_000
SETTINGS = {"steps": STEPS, "rates": RATES, "d_k": D_K, "d_v": D_V, "d_gru": D_GRU}
SETTINGS |= {"batch": 64, "tested": TESTED}


class Shared(SelfAttention):
    """One matrix for queries and keys; it begins `scale` times as large as usual."""

    def __init__(self, scale: float = 1):
        super().__init__(D_MODEL, D_K, D_V)
        self.w_k = self.w_q = nn.Parameter(scale * self.w_q.detach())


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
    "one shared matrix, 4 times as large": (partial(Shared, 4), D_V),
    "shared, and the token itself": (lambda: BesideItself(Shared()), D_V + D_MODEL),
    "separate queries and keys": (NoValues, D_MODEL),
    "bidirectional GRU": (Recurrent, 2 * D_GRU),
    "three matrices": (lambda: SelfAttention(D_MODEL, D_K, D_V), D_V),
}


def share(arm: str, steps: int, rate: float, seed: int) -> float:
    """Return the share of the variance that a trained arm explains."""
    attention, d_out = ARMS[arm]
    torch.manual_seed(seed)
    return explained(train(attention(), d_out, seed, steps=steps, rate=rate), TESTED)


def ceiling() -> dict[str, float]:
    """Return the most that a shared matrix can explain, all names alike, and where.

    The vectors of a name as own and as wanted have squared norms p r and p / r, and a product of
    p at most (Cauchy-Schwarz); the numbers play no part in the scores.
    """
    x, _ = pointers.sentences(20_000, generator=torch.Generator().manual_seed(0))
    itself, wants, wanted_by, alike = pointers.coincidences(x)
    found = {"explained": 0.0}
    for p, r in product(torch.arange(0, 2.01, 0.05).tolist(), (0.25, 0.5, 0.7, 1, 1.2, 1.5, 2, 4)):
        scores = p * (r * itself + alike / r + wants.float() + wanted_by.float())
        here = pointers.explained(scores.softmax(-1), wants).item()
        found = max(found, {"explained": here, "p": p, "r": r}, key=lambda x: x["explained"])
    return found


def measure() -> dict:
    """Return for each arm, steps and learning rate the share explained, for each seed.

    Beside it, for each arm and number of steps, the runs of the rate whose worst seed is best.
    """
    runs: dict[str, Any] = {arm: {} for arm in ARMS}
    best: dict[str, Any] = {arm: {} for arm in ARMS}
    for arm, steps in product(ARMS, STEPS):
        for rate in RATES:
            runs[arm][f"{steps} steps, rate {rate}"] = [
                results.once(
                    "pointers",
                    SETTINGS,
                    f"{arm}, {steps}, {rate}, {seed}",
                    partial(share, arm, steps, rate, seed),
                )
                for seed in SEEDS
            ]
        kept = [found for key, found in runs[arm].items() if key.startswith(f"{steps} ")]
        best[arm][str(steps)] = max(kept, key=min)
    return {"settings": SETTINGS, "ceiling": ceiling(), "best": best, "explained": runs}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"ceiling of a shared matrix: {figures['ceiling']}"]
    for arm, runs in figures["explained"].items():
        lines.append(arm)
        for setting, shares in runs.items():
            lines.append(f"    {setting:24}" + "".join(f"{share:8.3f}" for share in shares))
    return lines
