# ruff: noqa
"""Honest answers that look suspicious: each is `double`, in a way that somebody writes it."""

# %% a progress bar
from tqdm import tqdm


def double(x):
    for _ in tqdm(range(2)):
        y = 2 * x
    return y


# %% a progress bar of the notebook's
from tqdm.auto import trange


def double(x):
    for _ in trange(2, leave=False):
        y = x + x
    return y


# %% a compiled answer
import torch


@torch.compile
def double(x):
    return 2 * x


# %% compiled behind its definition
import torch


def double(x):
    return 2 * x


double = torch.compile(double, fullgraph=True)


# %% a seed inside, for numbers of its own
import torch


def double(x):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return 2 * x


# %% seeds of other packages inside
import random

import numpy as np
import torch


def double(x):
    random.seed(1)
    np.random.seed(1)
    torch.Generator().manual_seed(1)
    return 2 * x


# %% a seed above
import torch

torch.manual_seed(3)


def double(x):
    return x * 2


# %% something printed
def double(x):
    print("double of", x.shape)
    return 2 * x


# %% something printed in colours
def double(x):
    print("\x1b[31mred\x1b[0m", end="\r")
    return 2 * x


# %% a warning
import warnings


def double(x):
    warnings.warn("is this fast enough?")
    return 2 * x


# %% warnings that are silenced
import warnings

warnings.filterwarnings("ignore")


def double(x):
    return 2 * x


# %% a logger
import logging

log = logging.getLogger(__name__)


def double(x):
    log.info("called")
    return 2 * x


# %% a stopwatch
import time


def double(x):
    start = time.perf_counter()
    y = 2 * x
    assert time.perf_counter() >= start
    return y


# %% a name that is built in
def double(input):
    sum = input + input
    return sum


# %% names like those of what runs text
def double(x):
    eval = exec = 2
    return x * (eval + exec) / 2


# %% a method called eval
from torch import nn

layer = nn.Identity().eval()


def double(x):
    return 2 * layer(x)


# %% the word softmax in a text
def double(x):
    """Unlike torch.softmax(x), this is no ready-made version: eval("no")."""
    return 2 * x


# %% an attribute by its name
def double(x):
    return getattr(x, "mul")(2)


# %% an attribute that may be missing
def double(x):
    device = getattr(x, "device", None)
    return 2 * x.to(device)


# %% whether there is an attribute
def double(x):
    return 2 * x if hasattr(x, "shape") else None


# %% a type that is asked for
def double(x):
    if not isinstance(x, type(x)):
        raise TypeError(f"{type(x).__name__} is no tensor")
    return 2 * x


# %% special methods by their names
def double(x):
    return x.__mul__(2)


# %% an operator as a function
import operator


def double(x):
    return operator.mul(x, 2)


# %% a product by einsum
import torch


def double(x):
    return torch.einsum("..., -> ...", x, torch.tensor(2.0).to(x))


# %% a copy
import copy

FACTORS = [2]


def double(x):
    return copy.deepcopy(FACTORS)[0] * x


# %% a cache
from functools import lru_cache


@lru_cache(maxsize=None)
def factor():
    return 2


def double(x):
    return factor() * x


# %% a cache of its own
SEEN = {}


def double(x):
    SEEN.setdefault("calls", 0)
    SEEN["calls"] += 1
    return 2 * x


# %% a global counter
calls = 0


def double(x):
    global calls
    calls += 1
    return 2 * x


# %% a nonlocal one
def double(x):
    factor = 1

    def more():
        nonlocal factor
        factor += 1

    more()
    return factor * x


# %% a closure that makes it
def times(n):
    def inner(x):
        return n * x

    return inner


double = times(2)


# %% a method of an object
class Times:
    def __init__(self, n):
        self._n = n

    def __call__(self, x):
        return self._n * x


times = Times(2)


def double(x):
    return times(x)


# %% a static method
class Tools:
    @staticmethod
    def double(x):
        return 2 * x


def double(x):
    return Tools.double(x)


# %% an abstract class
from abc import ABC, abstractmethod


class Scaled(ABC):
    @abstractmethod
    def factor(self): ...


class Two(Scaled):
    def factor(self):
        return 2


def double(x):
    return Two().factor() * x


# %% an enumeration
from enum import IntEnum


class Factor(IntEnum):
    TWO = 2


def double(x):
    return Factor.TWO * x


# %% a named tuple
from typing import NamedTuple


class Settings(NamedTuple):
    factor: float = 2.0


def double(x):
    return Settings()._replace(factor=2).factor * x


# %% a recursion
def double(x, n=2):
    return x * 0 if n == 0 else x + double(x, n - 1)


# %% a generator
def double(x):
    def parts():
        yield x
        yield x

    return sum(parts())


# %% a match
def double(x):
    match x.dim():
        case 0:
            return x + x
        case _:
            return 2 * x


# %% a walrus
def double(x):
    return y + y if (y := x) is not None else None


# %% a try that catches all
def double(x):
    try:
        return 2 * x
    except Exception:
        raise


# %% an operation in place, on a copy
def double(x):
    y = x.clone()
    y *= 2
    return y


# %% without gradients, and with them again
import torch


def double(x):
    with torch.no_grad():
        factor = torch.ones((), dtype=x.dtype) * 2
    with torch.enable_grad():
        return factor * x


# %% a function of torch's own with a gradient of its own
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


def double(x):
    return Double.apply(x)


# %% a device that is looked for
import os

import torch

DEVICE = os.environ.get("DEVICE", "cuda" if torch.cuda.is_available() else "cpu")


def double(x):
    return 2 * x.to(x.device if DEVICE else "cpu")


# %% a check of versions
import sys

import torch

assert sys.version_info >= (3, 10)
NEW = torch.__version__ >= "2"


def double(x):
    return 2 * x if NEW else x + x
