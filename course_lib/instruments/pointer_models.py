"""Models of the pointer task: attention, and a linear layer that reads the number (lesson 03)."""

from itertools import repeat

import torch
from torch import Tensor, nn

from course_lib.data import pointers
from course_lib.instruments import training
from course_lib.self_attention import parameter_free

BATCH = 64


class VersionOne(nn.Module):
    """Attention without parameters."""

    def forward(self, x: Tensor) -> Tensor:
        """Average the tokens by their similarity."""
        return parameter_free(x)


def squared_error(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean squared error of the numbers that are fetched."""
    x, found = batch
    return (model(x) - found).square().mean()


def train(
    attention: nn.Module,
    d_out: int,
    seed: int,
    *,
    steps: int = 500,
    rate: float = 0.03,
    seconds: float | None = None,
) -> nn.Module:
    """Train what attends, and a linear layer behind its d_out numbers, on new sentences."""
    generator = torch.Generator().manual_seed(seed)
    with training.seeded(seed):
        model = nn.Sequential(attention, nn.Linear(d_out, 1))
    training.train(
        model,
        (pointers.sentences(BATCH, generator=generator) for _ in repeat(None)),
        squared_error,
        steps=steps,
        learning_rate=rate,
        seconds=seconds,
    )
    return model


@torch.no_grad()
def explained(model: nn.Module, tested: int) -> float:
    """Return the share of the numbers' variance that a model explains in so many new sentences."""
    x, found = pointers.sentences(tested, generator=torch.Generator().manual_seed(1000))
    return 1 - (squared_error(model, (x, found)) / found.square().mean()).item()
