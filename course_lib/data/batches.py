"""How sequences of unequal length become batches."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

Example = TypeVar("Example")

POOL = 50  # batches whose examples are sorted together


def pad(sequences: Sequence[Sequence[int]], filler: int) -> Int[Tensor, "batch n"]:
    """Fill every sequence up to the longest with `filler`, and stack them."""
    longest = max(map(len, sequences))
    return torch.tensor([[*tokens, *[filler] * (longest - len(tokens))] for tokens in sequences])


def similar_lengths(
    examples: Sequence[Example], size: int, seed: int, length: Callable[[Example], int]
) -> Iterator[list[Example]]:
    """Yield batches without end, each of examples of similar length, so that little is padding.

    Each pass over the examples has a new order, drawn from the seed.
    """
    draw = random.Random(seed)
    while True:
        shuffled = draw.sample(examples, len(examples))
        for begin in range(0, len(shuffled), POOL * size):
            pool = sorted(shuffled[begin : begin + POOL * size], key=length)
            cut = [pool[i : i + size] for i in range(0, len(pool), size)]
            yield from draw.sample(cut, len(cut))
