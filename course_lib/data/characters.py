"""Shakespeare by the character: what the small language models of the lessons read and write."""

import functools
from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from course_lib.data import shakespeare

HELD_OUT = 0.1  # share of the text, at its end, that is never trained on


class Characters:
    """Number the different characters of a text, in order."""

    def __init__(self, text: str):
        self.symbols = "".join(sorted(set(text)))
        self._numbers = {character: number for number, character in enumerate(self.symbols)}

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> Int[Tensor, " n"]:
        """Return the number of each character.

        Raises ValueError for a character that the text of the vocabulary does not have.
        """
        if unknown := set(text) - self._numbers.keys():
            raise ValueError(
                f"{''.join(sorted(unknown))!r} is not among the {len(self)} characters of "
                "Shakespeare's works: write in plain letters, digits and marks"
            )
        return torch.tensor([self._numbers[character] for character in text], dtype=torch.long)

    def decode(self, tokens: Int[Tensor, " n"]) -> str:
        """Return the text that these numbers stand for."""
        return "".join(self.symbols[token] for token in tokens.tolist())


@functools.cache
def _all() -> Characters:
    return Characters(shakespeare.complete_works())


def vocab() -> str:
    """Return the 84 characters of the complete works, in order.

    Raises `store.NotFetched` or `store.Damaged`.
    """
    return _all().symbols


def encode(text: str) -> Int[Tensor, " n"]:
    """Return the number of each character, as `Characters` does."""
    return _all().encode(text)


def decode(tokens: Int[Tensor, " n"]) -> str:
    """Return the text that these numbers stand for."""
    return _all().decode(tokens)


@functools.cache
def split() -> tuple[Int[Tensor, " learning"], Int[Tensor, " held_out"]]:
    """Return the characters to train on and those held out, the last tenth of the works.

    Raises `store.NotFetched` or `store.Damaged`.
    """
    tokens = encode(shakespeare.complete_works())
    cut = round((1 - HELD_OUT) * len(tokens))
    return tokens[:cut], tokens[cut:]


def batches(
    tokens: Int[Tensor, " all"], n: int, size: int, seed: int
) -> Iterator[tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]]:
    """Yield, without end, stretches of n characters and the character that follows each of them.

    The stretches begin anywhere, drawn from the seed. Raises ValueError for too short a text.
    """
    if len(tokens) <= n:
        raise ValueError(f"a stretch of {n} and its next need {n + 1} tokens, not {len(tokens)}")
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(tokens) - n, (size, 1), generator=generator)
        stretches = tokens[starts + torch.arange(n + 1)]
        yield stretches[:, :-1], stretches[:, 1:]
