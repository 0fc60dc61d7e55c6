"""Chosen blocks: each block of queries picks the blocks of keys that it will attend to (lesson 14).

Time for n tokens in blocks: O(n d + blocks^2 d); memory O(n d + blocks^2), of blocks, not tokens.
Source: Lu et al. 2025 ("MoBA"), section 2.2; Yuan et al. 2025 let the queries choose likewise.
"""

import torch
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor


def choose_blocks(
    q: Float[Tensor, "... n d"], k: Float[Tensor, "... n d"], block: int, chosen: int
) -> Int[Tensor, "... blocks m"]:
    """List for each block of queries the earlier blocks that fit it best, and itself; -1 is none.

    The score of an earlier block is mean query . mean key. A row has the block itself and the
    `chosen` earlier blocks with the highest scores, in any order, or all of them where there are
    fewer. A later block is in no row. Time O(n d + blocks^2 d), so no tensor holds n x n numbers.
    Source: Lu et al. 2025, section 2.2, where each query chooses alone. Raises ValueError where
    `block` does not divide n.
    """
    n = q.shape[-2]
    if n % block:
        raise ValueError(f"blocks of {block} tokens do not divide n = {n}: fill the text up")
    # average the queries of each block, and the keys, and score block against block
    queries, keys = (reduce(x, "... (b row) d -> ... b d", "mean", row=block) for x in (q, k))
    scores = queries @ keys.mT
    # the block itself comes before all others, a later one never
    numbers = torch.arange(n // block, device=q.device)
    back = numbers.unsqueeze(-1) - numbers
    scores = scores.masked_fill(back == 0, torch.inf).masked_fill(back < 0, -torch.inf)
    # take the highest, and strike out those that are none
    best, listed = scores.topk(min(chosen + 1, n // block))
    return listed.masked_fill(best == -torch.inf, -1)
