"""Pooling: one vector for a sentence (lesson 09)."""

from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor


def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real tokens, those where `mask` is True.

    A sentence without tokens gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    # count the real tokens, and let an empty sentence divide its sum of zeros by one
    count = mask.sum(-1, keepdim=True).clamp(min=1)
    # add up the real tokens alone, and divide by their number
    return einsum(states, mask.to(states), "... n d, ... n -> ... d") / count
