"""Which tokens the scores of matrices prefer that a learner has set by hand."""

from collections.abc import Sequence

import torch
from torch import Tensor


def preferred(scores: Tensor, named: dict[str, Tensor]) -> str:
    """Name the tokens whose scores are above the average of their row.

    `named` has, by name, which keys each query may prefer. Others are counted, so that
    two sets of them are hardly ever taken for each other.
    """

    def above(x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True)
        return torch.sign(x.masked_fill(x.abs() < 1e-6, 0))

    found = above(scores)
    same = (name for name, x in named.items() if torch.equal(above(x.to(scores)), found))
    return next(same, f"some others ({int((found > 0).sum())} of {found.numel()} scores)")


def in_one_dtype(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Bring matrices to the dtype in which a layer would compute with all of them."""
    exact = any(w.dtype == torch.float64 for w in matrices)
    return [w.double() if exact else w for w in matrices]
