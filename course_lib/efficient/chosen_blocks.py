"""Chosen blocks: each query picks the blocks of keys that it will attend to (lesson 14).

Time for n tokens in blocks: O(n d + n blocks d); memory O(n d + n blocks), of blocks, not tokens.
Source: Lu et al. 2025 ("MoBA"), section 2.2; Yuan et al. 2025 let the queries choose likewise.
"""

import torch
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor


def choose_blocks(
    q: Float[Tensor, "... n d"], k: Float[Tensor, "... n d"], block: int, chosen: int
) -> Int[Tensor, "... n m"]:
    """List for each query the earlier blocks that fit it best, and its own; -1 is none.

    The score of an earlier block is query . mean key. A row has the query's own block and the
    `chosen` earlier blocks with the highest scores, in any order, or all of them where there are
    fewer. A later block is in no row. Time O(n blocks d), so no tensor holds n x n numbers.
    Source: Lu et al. 2025, section 2.2. Raises ValueError where `block` does not divide n.
    """
    n = q.shape[-2]
    if n % block:
        raise ValueError(f"blocks of {block} tokens do not divide n = {n}: fill the text up")
    # average the keys of each block, and score each query against each block
    keys = reduce(k, "... (b row) d -> ... b d", "mean", row=block)
    scores = q @ keys.mT
    # a query's own block comes before all others, a later one never
    own = torch.arange(n, device=q.device) // block
    back = own.unsqueeze(-1) - torch.arange(n // block, device=q.device)
    scores = scores.masked_fill(back == 0, torch.inf).masked_fill(back < 0, -torch.inf)
    # take the highest, and strike out those that are none
    best, listed = scores.topk(min(chosen + 1, n // block))
    return listed.masked_fill(best == -torch.inf, -1)
