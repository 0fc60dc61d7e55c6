"""Probe layers: made by name on both sides of the handle, so that no live object passes it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

LAYERS: dict[str, Callable[..., Callable]] = {}


@dataclass(frozen=True, repr=False)
class Probe:
    """A layer, by the name of the function below that makes it and by that function's arguments.

    It may stand among a case's inputs, or among the arguments that build a class.
    """

    name: str
    arguments: tuple = ()

    def make(self) -> Callable:
        """Make the layer anew."""
        return LAYERS[self.name](*self.arguments)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"


def made(values: tuple) -> tuple:
    """Put a layer in the place of each probe."""
    return tuple(value.make() if isinstance(value, Probe) else value for value in values)


def layer(make: Callable) -> Callable:
    """Let a probe name the function below."""
    LAYERS[make.__name__] = make
    return make


@layer
def linear(d_in: int, d_out: int) -> nn.Module:
    """Map each word by a matrix and a bias, which are weights like any others."""
    return nn.Linear(d_in, d_out)


@layer
def running_mean() -> Callable:
    """Average each word with those before it: causal."""
    return lambda x: x.cumsum(-2) / torch.arange(1, x.shape[-2] + 1).unsqueeze(-1).to(x)


@layer
def whole_mean() -> Callable:
    """Average all words: only the last one has no future to see."""
    return lambda x: x.mean(-2, keepdim=True).expand_as(x)


@layer
def scaled() -> Callable:
    """Multiply the words by a factor that comes as a second argument."""

    def multiply(x: Tensor, factor: Tensor) -> Tensor:
        return x * factor

    return multiply
