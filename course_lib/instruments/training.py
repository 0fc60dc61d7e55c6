"""The one training loop that every lesson shares."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn
from tqdm import tqdm

Batch = TypeVar("Batch")

CLIP = 1.0  # longest gradient that a step may follow


@dataclass(frozen=True)
class History:
    """What a training run saw: the loss of each step, and the seconds it took in all."""

    losses: list[float]
    seconds: float

    @property
    def steps(self) -> int:
        """Return how many steps were taken."""
        return len(self.losses)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from torch's random numbers by a seed, inside the block alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def train(
    model: nn.Module,
    batches: Iterable[Batch],
    loss: Callable[[nn.Module, Batch], Tensor],
    *,
    steps: int,
    learning_rate: float,
    seconds: float | None = None,
    seed: int = 0,
    warm_up: float = 0.05,
) -> History:
    """Change `model` in place to lower `loss(model, batch)`; leave it in evaluation mode.

    Adam with decoupled weight decay (Loshchilov & Hutter 2019), gradients clipped to length 1;
    the learning rate rises to `learning_rate` over a first share of the budget, `warm_up` (0 for
    none), and falls linearly to 0. The budget ends with `steps`, with `seconds` or with `batches`,
    whichever comes first; where the machine is too slow for the steps, the learning rate falls by
    the clock. The seed serves what the model itself draws, such as dropout; the order of the
    batches is theirs.

    Raises FloatingPointError when the loss is no longer a finite number.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    losses, used, start = [], 0.0, time.perf_counter()
    rising = max(warm_up, 1 / steps)
    model.train()
    with seeded(seed), tqdm(total=steps, file=sys.stdout, mininterval=0.5, unit="step") as bar:
        for batch in batches:
            # rise, then fall, by the share of the budget that is used
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * min((used + 1 / steps) / rising, 1 - used)
            # measure, differentiate, step
            value = loss(model, batch)
            losses.append(_finite(value, len(losses) + 1, learning_rate))
            optimizer.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            used = _share_used(len(losses) / steps, time.perf_counter() - start, seconds)
            bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            bar.update(round(used * steps) - bar.n)
            if used >= 1:
                break
    model.eval()
    return History(losses, time.perf_counter() - start)


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
