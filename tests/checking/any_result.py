"""Results that no author of a check thinks of, made up by a program."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

DTYPES = sorted({x for x in vars(torch).values() if isinstance(x, torch.dtype)}, key=str)
NUMBERS = (0.0, 1.0, -1.5, 1e-45, 1e38, float("inf"), float("-inf"), float("nan"))
SHAPES = ((), (0,), (1,), (3,), (2, 3), (3, 2), (1, 1), (2, 0), (0, 2), (2, 3, 4), (1, 2, 3, 2))


class Odd(Tensor):
    """A subclass like any other."""


class Numbers(tuple):
    """A tuple that a library gave its own name."""


class Opaque:
    """No data at all."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    __hash__ = None


def made_up(chance: random.Random, depth: int = 0) -> Any:
    """Make up a result: a tensor of any kind, a number, a text, or several of these."""
    if depth < 2 and chance.random() < 0.25:
        items = [made_up(chance, depth + 1) for _ in range(chance.randrange(4))]
        return chance.choice([list, tuple, Numbers, lambda x: dict(enumerate(x))])(items)
    return chance.choice(MAKERS)(chance)


def _numbers(chance: random.Random) -> Tensor:
    shape = chance.choice(SHAPES)
    count = int(np.prod(shape))
    values = torch.tensor([chance.choice(NUMBERS) for _ in range(count)])
    return values.reshape(shape)


def _of_a_dtype(chance: random.Random) -> Any:
    dtype = chance.choice(DTYPES)
    try:
        return _numbers(chance).nan_to_num(0, 1, -1).to(dtype)
    except (RuntimeError, TypeError):  # of some dtypes there are only empty tensors
        return torch.empty(2, dtype=dtype)


def _fake(chance: random.Random) -> Tensor:
    with FakeTensorMode():
        return torch.zeros(chance.choice(SHAPES))


MAKERS: tuple[Callable[[random.Random], Any], ...] = (
    _numbers,
    _numbers,
    _of_a_dtype,
    _of_a_dtype,
    _fake,
    lambda chance: torch.zeros(chance.choice(SHAPES), device="meta"),
    lambda chance: _numbers(chance).as_subclass(Odd),
    lambda chance: nn.Parameter(_numbers(chance)),
    lambda chance: _numbers(chance).to_sparse(),
    lambda chance: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
    lambda chance: torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8),
    lambda chance: _numbers(chance).to(torch.complex64).conj(),
    lambda chance: _numbers(chance).numpy(),
    lambda chance: np.float64(chance.choice(NUMBERS)),
    lambda chance: chance.choice(NUMBERS),
    lambda chance: chance.choice([0, 1, -7, 10**30, 2**64, True, None, "", "text", b"bytes", 1j]),
    lambda chance: chance.choice([Opaque(), Opaque, object(), print, iter([1]), {1, 2}, range(3)]),
)
