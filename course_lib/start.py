"""The first function: small enough that only the way of working is new (lesson 00)."""

from jaxtyping import Float
from torch import Tensor


def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    # multiply every element by two, without changing x
    return 2 * x
