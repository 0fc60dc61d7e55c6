"""One loop for every pattern: the online softmax over the tiles of a plan (lesson 13).

`tiled_attention` with masks, and with tiles left out. What the variants use is `kernel.attend`,
which also writes its own backward pass.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def attend_by_plan(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    plan: list,
) -> Float[Tensor, "... query d_v"]:
    """Attend to the pairs of a plan, one tile at a time, by an online softmax.

    A plan has a row (start, stop, tiles) for each block of queries start, ..., stop - 1, in their
    order; a tile is (first, last, mask): the keys first, ..., last - 1, and who of these queries
    may look at whom, None for all. Each query sees a key in some tile, but not in every tile.
    Time O(d) a pair that is in a tile. Source: Dao et al. 2022, algorithm 1.
    """
    rows = []
    for start, stop, tiles in plan:
        queries = q[..., start:stop, :] / q.shape[-1] ** 0.5
        # begin with a maximum below every score, and with empty sums
        peak = torch.full_like(queries[..., :1], torch.finfo(q.dtype).min)
        total, output = 0.0, 0.0
        for first, last, mask in tiles:
            # score one tile, and hide what its mask hides
            scores = queries @ k[..., first:last, :].mT
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            # raise the maximum, and rescale what was summed before
            risen = torch.maximum(peak, scores.amax(-1, keepdim=True))
            shrink, weights = (peak - risen).exp(), (scores - risen).exp()
            total = shrink * total + weights.sum(-1, keepdim=True)
            output = shrink * output + weights @ v[..., first:last, :]
            peak = risen
        rows.append(output / total)
    return torch.cat(rows, dim=-2)
