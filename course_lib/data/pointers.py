"""The pointer task: in each sentence, every token must fetch the number of another."""

import torch
from jaxtyping import Float
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


def names_of(x: Float[Tensor, "*batch n d_model"]) -> tuple[Tensor, Tensor]:
    """Return the numbers of the tokens' own names, and of those that they want."""
    names = (x.shape[-1] - 1) // 2
    return x[..., :names].argmax(-1), x[..., names:-1].argmax(-1)
