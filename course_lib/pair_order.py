"""Two orders of the columns that rotary positions turn in pairs (lesson 09)."""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor


def pairs_to_halves(
    weight: Float[Tensor, "columns d_model"], heads: int
) -> Float[Tensor, "columns d_model"]:
    """Reorder a query or key matrix of `heads` heads from neighbouring pairs to halves.

    A row of `weight` makes one column of the queries or keys, and each head has d_k of them. Su et
    al. 2021 turn a head's columns 2c and 2c + 1 as a pair; `positions.rotary` turns c and
    c + d_k / 2, with c from 0. So in each head row 2c becomes row c, and row 2c + 1 becomes row
    c + d_k / 2.
    """
    # in each head, put the first of all pairs into the left half, the second into the right
    return rearrange(
        weight, "(heads pair two) d_model -> (heads two pair) d_model", heads=heads, two=2
    )
