"""What a head looks at, as one number: its induction score (lesson 06)."""

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def induction_score(
    weights: Float[Tensor, "*heads n n"], tokens: Int[Tensor, " n"]
) -> Float[Tensor, "*heads"]:
    """Return how much of its weight each head gives to what followed the same token before.

    Where a token has occurred before, its query has targets: the keys right after those earlier
    copies. The score is the weight on them, averaged over the queries that have any; it is 0 where
    none has. `weights` are causal. Source: Olsson et al. 2022, who call it prefix matching.

    >>> import torch
    >>> tokens = torch.tensor([5, 7, 5])
    >>> weights = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.1, 0.6, 0.3]])
    >>> round(induction_score(weights, tokens).item(), 2)
    0.6
    """
    # mark, for each query, the earlier copies of its token
    copies = (tokens[:, None] == tokens).tril(-1)
    # mark the keys right after them
    followed = F.pad(copies, (1, 0))[:, :-1]
    # add up each query's weight on those
    found = (weights * followed).sum(-1)
    # average over the queries that have any, if there are such
    returns = copies.any(1)
    return found[..., returns].sum(-1) / returns.sum().clamp(min=1)
