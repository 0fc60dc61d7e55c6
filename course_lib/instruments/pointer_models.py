"""Models of the pointer tasks: attention, and what reads its output (lessons 03 and 06)."""

from collections.abc import Callable
from itertools import repeat

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax
from course_lib.data import pointers
from course_lib.instruments import training
from course_lib.self_attention import SelfAttention, parameter_free, project

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


class TwoNumbers(nn.Module):
    """Names choose whom to look at, tokens are carried, and a linear layer reads two numbers."""

    def __init__(self, attention: nn.Module, d_model: int):
        super().__init__()
        self.attention, self.readout = attention, nn.Linear(d_model, 2)

    def forward(self, names: Tensor, tokens: Tensor) -> Tensor:
        """Return both numbers for each token."""
        return self.readout(self.attention(names, names, tokens))


def train_two_numbers(
    attention: Callable[[int, int], nn.Module], heads: int, seed: int, *, steps: int = 500
) -> TwoNumbers:
    """Train `attention(d_model, heads)`, and a readout behind it, on `pointers.several`."""
    generator = torch.Generator().manual_seed(seed)
    with training.seeded(seed):
        model = TwoNumbers(attention(16, heads), 16)
    batches = (pointers.several(BATCH, generator=generator) for _ in repeat(None))

    def loss(model: TwoNumbers, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        names, tokens, wanted = batch
        return (model(names, tokens) - wanted).square().mean()

    training.train(model, batches, loss, steps=steps, learning_rate=0.03, seconds=30)
    return model


def train_two_letters(
    block: Callable[[int], nn.Module],
    heads: int,
    seed: int,
    *,
    steps: int = 300,
    rate: float = 0.003,
    seconds: float | None = None,
) -> nn.Module:
    """Train `block(heads)`, whose output is (batch, n, 2, letters), on `pointers.two_letters`."""
    generator = torch.Generator().manual_seed(seed)
    with training.seeded(seed):
        model = block(heads)
    batches = (pointers.two_letters(BATCH, generator=generator) for _ in repeat(None))

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        tokens, wanted = batch
        return F.cross_entropy(model(tokens).flatten(0, 2), wanted.flatten())

    training.train(model, batches, loss, steps=steps, learning_rate=rate, seconds=seconds)
    return model


@torch.no_grad()
def explained(model: nn.Module, tested: int) -> float:
    """Return the share of the numbers' variance that a model explains in so many new sentences."""
    x, found = pointers.sentences(tested, generator=torch.Generator().manual_seed(1000))
    return 1 - (squared_error(model, (x, found)) / found.square().mean()).item()


@torch.no_grad()
def looks(layer: SelfAttention, x: Tensor) -> tuple[float, ...]:
    """Return a token's mean weight on itself, on the one it wants, and on one that wants it.

    Pairs in which each wants the other are left out.
    """
    q, k, _ = project(x, layer.w_q, layer.w_k, layer.w_v)
    weights = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5)
    itself, wants, wanted_by, _ = pointers.coincidences(x)
    kinds = itself, wants & ~wanted_by, wanted_by & ~wants
    return tuple(weights[of].mean().item() for of in kinds)
