"""Which tokens the scores of matrices prefer that a learner has set by hand."""

import torch
from torch import Tensor


def preferred(scores: Tensor, named: dict[str, Tensor]) -> str:
    """Name the tokens whose scores are above the average of their row.

    `named` has, by name, which keys each query may prefer. Others are "some others".
    """

    def above(x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True)
        return torch.sign(x.masked_fill(x.abs() < 1e-6, 0))

    found = above(scores)
    same = (name for name, x in named.items() if torch.equal(above(x.double()), found))
    return next(same, "some others")
