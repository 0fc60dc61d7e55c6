"""The one training loop that every lesson shares, and the claims about what it trains."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from IPython.core.getipython import get_ipython
from IPython.display import display
from torch import Tensor, nn
from tqdm import tqdm

Batch = TypeVar("Batch")
Model = TypeVar("Model", bound=nn.Module)

CLIP = 1.0  # largest norm of a gradient that a step follows
# the share of the budget, and the steps that were really taken
BAR = "{percentage:3.0f}%|{bar:30}| {elapsed}<{remaining}{postfix}"
CLAIM = "application/vnd.course.claim+json"  # how `make claims` finds them


@dataclass(frozen=True)
class History:
    """What a training run saw: the loss of each step, and the seconds it took in all.

    `asked` is how many steps the run should have taken.
    """

    losses: list[float]
    seconds: float
    asked: int

    def __repr__(self) -> str:
        """Say how many steps, and how they ended: a notebook shows a cell's last value."""
        ended = f", last loss {self.losses[-1]:.2f}" if self.losses else ""
        return f"{self.steps} of {self.asked} steps{ended}"

    @property
    def steps(self) -> int:
        """Return how many steps were taken."""
        return len(self.losses)

    @property
    def complete(self) -> bool:
        """Return True if all steps were taken: neither clock nor reader has ended the run."""
        return self.steps == self.asked


class ClaimFailed(AssertionError):
    """A claim about a trained model that does not hold here; the message says what came."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from torch's random numbers by a seed, inside the block alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def train(
    model: Model,
    batches: Iterable[Batch],
    loss: Callable[[Model, Batch], Tensor],
    *,
    steps: int,
    learning_rate: float,
    seconds: float | None = None,
    seed: int = 0,
    warm_up: float = 0.05,
    clip: float = CLIP,
) -> History:
    """Change `model` in place to lower `loss(model, batch)`; leave it in evaluation mode.

    Adam with decoupled weight decay (Loshchilov & Hutter 2019), gradients clipped to length `clip`;
    the learning rate rises to `learning_rate` over a first share of the budget, `warm_up` (0 for
    none), and falls linearly to 0. The budget ends with `steps`, with `seconds` or with `batches`,
    whichever comes first; where the machine is too slow for the steps, the learning rate falls by
    the clock. A notebook's stop button ends it too, and the model is kept as it is then. The seed
    serves what the model itself draws, such as dropout; the order of the batches is theirs. The
    history is returned, and kept as `model.history`. The environment variable COURSE_CLOCK is a
    factor on `seconds`: "inf" stops the clock, "0.01" is for tests.

    Raises FloatingPointError when the loss is no longer a finite number.
    """
    if seconds is not None:
        seconds *= float(os.environ.get("COURSE_CLOCK", "1"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    losses, used, start = [], 0.0, time.perf_counter()
    rising = max(warm_up, 1 / steps)
    model.train()
    bar = tqdm(total=100, file=sys.stdout, mininterval=0.5, bar_format=BAR)
    with seeded(seed), _stopped_by_reader(losses, steps), bar:
        for batch in batches:
            # rise, then fall, by the share of the budget that is used
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * min((used + 1 / steps) / rising, 1 - used)
            # measure, differentiate, step
            value = loss(model, batch)
            losses.append(_finite(value, len(losses) + 1, learning_rate))
            optimizer.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            used = _share_used(len(losses) / steps, time.perf_counter() - start, seconds)
            steps_taken = f"step {len(losses)} of {steps}"
            bar.set_postfix_str(f"{steps_taken}, loss {losses[-1]:.3f}", refresh=False)
            bar.update(min(100, round(100 * used)) - bar.n)
            if used >= 1:
                break
    model.eval()
    if len(losses) < steps / 10 and used >= 1:
        print(
            f"Only {len(losses)} of {steps} steps fitted into the time on this machine: this model "
            "has hardly learned.\n"
            "What the text says is from full runs, whose outputs the course's own notebooks hold."
        )
    history = vars(model)["history"] = History(losses, time.perf_counter() - start, steps)
    return history


@contextmanager
def _stopped_by_reader(losses: list[float], steps: int) -> Iterator[None]:
    """End a training in a notebook where it is interrupted, and say so; elsewhere raise."""
    try:
        yield
    except KeyboardInterrupt:
        if not losses or get_ipython() is None:
            raise
        print(f"Stopped at step {len(losses)} of {steps}: the model is kept as it is.")


def expect(claim: str, holds: bool, came: Any, *models: nn.Module) -> None:
    """Hold trained models to a claim, and show what came beside it.

    What a training reaches differs between machines, thread counts and versions of torch, so a
    claim needs a margin: research/results/claims.json has the runs in which it held. It binds only
    where each of `models` has taken all of its steps; where a training ended before, that is said
    instead.

    Raises ClaimFailed where the claim does not hold.
    """
    histories: list[History] = [vars(model)["history"] for model in models]
    short = [history for history in histories if not history.complete]
    sign, note = ("✓" if holds else "✗"), ""
    if short:
        taken = f"{short[0].steps} of {short[0].asked} steps were taken"
        sign, note = "–", f" Not judged here: {taken}."
    text = f"{sign} expected: {claim}. Measured: {_rounded(came)}.{note}"
    data = {"claim": claim, "holds": None if short else bool(holds), "came": _plain(came)}
    display({"text/plain": text, CLAIM: data}, raw=True)
    if not short and not holds:
        raise ClaimFailed(
            f"expected: {claim}. Measured: {came}. It held in the runs of "
            "research/results/claims.json, but another processor or version of torch may train "
            "otherwise: if nothing was changed above, it is the machine and no mistake of yours"
        )


def _rounded(value: Any) -> Any:
    """Return a number with three digits, and so those of a list or table, to be read."""
    if isinstance(value, float):
        return float(f"{value:.3g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_rounded, value))
    return [*map(_rounded, value)] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """Return numbers, and lists or tables of them, as JSON has them, which knows no NaN."""
    if isinstance(value, Tensor):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _share_used(share_of_steps: float, elapsed: float, seconds: float | None) -> float:
    """Return the share of the budget that is used, by the steps or by the clock.

    The clock counts only after a tenth of its time: the first steps are slow, and a machine that
    is fast enough should take exactly the same steps each time.
    """
    if seconds is None or elapsed < seconds / 10:
        return share_of_steps
    return max(share_of_steps, elapsed / seconds)


def _finite(value: Tensor, step: int, learning_rate: float) -> float:
    """Return the loss as a number, if it is one."""
    number = value.item()
    if not math.isfinite(number):
        raise FloatingPointError(
            f"the loss should be a finite number but is {number} at step {step}: the learning rate "
            f"{learning_rate} may be too high, or the model divides by 0 or takes log 0"
        )
    return number
