"""The pointer task: in each sentence, every token must fetch what others have."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor
from torch.nn import functional as F

NAMES = 8


def sentences(
    batch: int, names: int = NAMES, *, generator: Generator
) -> tuple[Float[Tensor, "batch names d_model"], Float[Tensor, "batch names 1"]]:
    """Draw sentences of one token a name, and the number that each token should fetch.

    A token is d_model = 2 * names + 1 numbers: its own name as a one-hot vector, the name of the
    token that it wants as another, and a normal number. No token wants itself.
    """
    own = torch.rand(batch, names, generator=generator).argsort(-1)
    wanted = (own + torch.randint(1, names, own.shape, generator=generator)) % names
    numbers = torch.randn(batch, names, 1, generator=generator)
    x = torch.cat([F.one_hot(own, names), F.one_hot(wanted, names), numbers], dim=-1)
    found = (wanted.unsqueeze(-1) == own.unsqueeze(-2)).float() @ numbers
    return x, found


def several(
    batch: int, wanted: int = 2, names: int = 5, *, generator: Generator
) -> tuple[
    Float[Tensor, "batch names d_model"],
    Float[Tensor, "batch names d_model"],
    Float[Tensor, "batch names wanted"],
]:
    """Draw sentences in which each token wants several numbers: names, tokens, the numbers.

    A token is d_model = (1 + wanted) * names + 1 numbers: its own name and those that it wants as
    one-hot vectors, and a normal number. The names are the same without the number, which is 0.
    """
    own = torch.rand(batch, names, generator=generator).argsort(-1)
    others = torch.rand(batch, names, names, generator=generator).argsort(-1)[..., :wanted]
    numbers = torch.randn(batch, names, 1, generator=generator)
    known = torch.cat([F.one_hot(own, names), F.one_hot(others, names).flatten(-2)], dim=-1)
    tokens = torch.cat([known, numbers], dim=-1)
    found = (others.unsqueeze(-1) == own[:, None, None]).float() @ numbers.unsqueeze(1)
    return F.pad(known.float(), (0, 1)), tokens, found.squeeze(-1)


def two_letters(
    batch: int, names: int = 16, letters: int = 20, *, generator: Generator
) -> tuple[Int[Tensor, "batch names 4"], Int[Tensor, "batch names 2"]]:
    """Draw sentences in which each token wants two letters: the tokens, and those letters.

    A token is its name, its letter, and the two names that it wants, as whole numbers.
    """
    own = torch.rand(batch, names, generator=generator).argsort(-1)
    has = torch.randint(letters, (batch, names), generator=generator)
    wanted = torch.rand(batch, names, names, generator=generator).argsort(-1)[..., :2]
    by_name = has.gather(-1, own.argsort(-1))
    found = by_name.gather(-1, wanted.flatten(1)).view_as(wanted)
    return torch.stack([own, has, *wanted.unbind(-1)], dim=-1), found


def names_of(x: Float[Tensor, "*batch n d_model"]) -> tuple[Tensor, Tensor]:
    """Return the numbers of the tokens' own names, and of those that they want."""
    names = (x.shape[-1] - 1) // 2
    return x[..., :names].argmax(-1), x[..., names:-1].argmax(-1)


class Coincidences(NamedTuple):
    """Which tokens of a sentence have names in common, as matrices (i, j) of booleans."""

    itself: Bool[Tensor, "*batch n n"]
    wants: Bool[Tensor, "*batch n n"]  # i wants j
    wanted_by: Bool[Tensor, "*batch n n"]  # j wants i
    alike: Bool[Tensor, "*batch n n"]  # i and j want the same, or are the same token


def coincidences(x: Float[Tensor, "*batch n d_model"]) -> Coincidences:
    """Compare the names of all pairs of tokens."""
    own, wanted = names_of(x)
    wants = wanted.unsqueeze(-1) == own.unsqueeze(-2)
    itself = own.unsqueeze(-1) == own.unsqueeze(-2)
    return Coincidences(itself, wants, wants.mT, wanted.unsqueeze(-1) == wanted.unsqueeze(-2))


def explained(
    shares: Float[Tensor, "*batch n n"], wants: Bool[Tensor, "*batch n n"]
) -> Float[Tensor, ""]:
    """Return the share of the variance that weighted averages explain, at the best scale.

    E[share of the wanted token]^2 / E[sum of squared shares], for independent numbers.
    """
    return shares[wants].mean() ** 2 / shares.square().sum(-1).mean()
