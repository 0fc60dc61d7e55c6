"""BigBird: blocks of tokens look at a window, a few global and some random blocks (lesson 13).

Time and memory for n tokens whose rows list m blocks: O(n m block d) and O(n d), forward and
backward; a row that lists every block adds O(n block d) to the time.
Source: Zaheer et al. 2020 ("Big Bird"), section 2, figure 1, and appendix D on blocks.
"""

from functools import lru_cache, partial
from itertools import groupby

import torch
from einops import repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from course_lib.efficient.kernel import Tile, attend, spans
from course_lib.efficient.masking import (
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    hiding,
    read_mask,
    refuse_another_text,
)
from course_lib.efficient.variant import Variant
from course_lib.self_attention import scaled_dot_product_attention

TILE_KEYS = 512  # keys a tile at most, or one block: a row that lists every block is many tiles
# the links of BigBird alone and together: window, global and random blocks, as `neighbours` takes
PARTS = {
    "window": (3, 0, 0),
    "random": (0, 0, 2),
    "global": (0, 1, 0),
    "window + random": (3, 0, 2),
    "window + global": (3, 1, 0),
    "global + random": (0, 1, 2),
    "BigBird": (3, 1, 2),
}


def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 means none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. A row lists each block once, in any order. Time and memory O(blocks^2), of blocks, not
    tokens. Source: Zaheer et al. 2020, section 2. Raises ValueError for a window that is even and
    not 0.
    """
    if window and window % 2 == 0:
        raise ValueError(f"a window needs a middle block, so it is odd or 0, not {window}")
    generator, rows = torch.Generator().manual_seed(seed), []
    for block in range(blocks):
        # begin with the global blocks; the row of a global block has every block
        row = list(range(blocks if block < global_blocks else min(global_blocks, blocks)))
        # add the window, cut at the ends
        first, last = block - window // 2, block + window // 2
        around = range(max(0, first), min(blocks, last + 1)) if window else ()
        row += [other for other in around if other not in row]
        # draw from the blocks that are not there yet
        order = torch.randperm(blocks, generator=generator).tolist()
        seen = set(row)
        rows.append(row + [other for other in order if other not in seen][:random_blocks])
    # fill up all rows to the longest
    longest = max(map(len, rows), default=0)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows]).long()


def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which tokens see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    blocks = len(neighbours)
    # mark the blocks that each row lists, and -1 in a column beside them, cut off later
    listed = torch.zeros(blocks, blocks + 1, dtype=torch.bool, device=neighbours.device)
    listed.scatter_(-1, neighbours % (blocks + 1), True)
    # make each block `block` tokens long and wide
    return repeat(listed[:, :-1], "query key -> (query row) (key column)", row=block, column=block)


def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. -1 may be anywhere in a row, no block is listed twice, and a row that lists
    none gives zeros. Time O(n m block d), memory O(n d), so no tensor of the forward
    pass holds n x n numbers. Source: Zaheer et al. 2020, section 2. Raises ValueError unless
    n = blocks x block, and for blocks that do not exist.
    """
    n, blocks = q.shape[-2], len(neighbours)
    if n != blocks * block:
        raise ValueError(
            f"{blocks} rows of neighbours for blocks of {block} tokens need n = {blocks * block} "
            f"tokens, not {n}: fill the text up to a whole number of blocks"
        )
    if (neighbours < -1).any() or (neighbours >= blocks).any():
        raise ValueError(
            f"neighbours of {blocks} blocks must be from 0 to {blocks - 1}, or -1 for none, not "
            f"from {neighbours.min()} to {neighbours.max()}: are they counted in tokens?"
        )
    tokens, rows = torch.arange(n, device=q.device).view(blocks, block), []
    for queries, row in zip(q.split(block, dim=-2), neighbours, strict=True):
        # find the tokens of the listed blocks; -1 is none
        keys = tokens[row[row != -1]].flatten()
        # attend to them as to one text; a query that sees nothing gets zeros
        if len(keys) > 0:
            rows.append(scaled_dot_product_attention(queries, k[..., keys, :], v[..., keys, :]))
        else:
            rows.append(queries.new_zeros(*queries.shape[:-1], v.shape[-1]))
    return torch.cat(rows, dim=-2)


def bigbird_by_kernel(
    q: Queries, k: Keys, v: Values, neighbours: Int[Tensor, "blocks m"], block: int
) -> Output:
    """Attend as `bigbird_attention` does, by the kernel: fast, and forward and backward O(n d)."""
    lists = [{other for other in row if other != -1} for row in neighbours.tolist()]
    tiles = [
        (rows, stretches, None)
        for rows, row in zip(spans(q.shape[-2], block), lists, strict=True)
        for stretches in _stretches(sorted(row), block)
    ]
    return attend(q, k, v, tiles)[0]


def attend_back(
    q: Queries, k: Keys, v: Values, neighbours: Int[Tensor, "blocks m"], block: int
) -> Output:
    """Attend to the listed blocks, but to no later token: the causal form.

    A block of queries drops the blocks after it, sees those before it whole, and of its own block,
    if its row lists it, each token up to itself. Time and memory are at most those of
    `bigbird_attention`. Source: Child et al. 2019, section 4, whose patterns are causal so.
    """
    future = torch.full((block, block), float("-inf"), device=q.device).triu(1)
    tiles: list[Tile] = []
    for own, row in enumerate(neighbours.tolist()):
        rows = slice(own * block, (own + 1) * block)
        earlier = sorted(other for other in row if 0 <= other < own)
        tiles += [(rows, stretches, None) for stretches in _stretches(earlier, block)]
        tiles += [(rows, [rows], future)] if own in row else []
    return attend(q, k, v, tiles)[0]


def _stretches(row: list[int], block: int) -> list[list[slice]]:
    """Share out a row's blocks to tiles; in each, blocks side by side make one stretch."""
    tiles = []
    for part in spans(len(row), max(1, TILE_KEYS // block)):
        # blocks side by side are as far from their places in the row
        runs = groupby(enumerate(row[part]), key=lambda pair: pair[1] - pair[0])
        blocks = [[other for _, other in run] for _, run in runs]
        tiles.append([slice(run[0] * block, (run[-1] + 1) * block) for run in blocks])
    return tiles


# a list is asked for in every layer and every step
_listed = lru_cache(maxsize=8)(neighbours)


def rule(
    q: Queries,
    k: Keys,
    v: Values,
    mask: Mask = None,
    *,
    block: int,
    window: int,
    global_blocks: int,
    random_blocks: int,
    seed: int = 0,
    causal: bool = False,
) -> Output:
    """Attend to a window of blocks, to global and to random ones; with `causal`, to none later."""
    refuse_another_text(q, k)
    real, causal = read_mask(mask, q, k, causal)
    n, missing = q.shape[-2], -q.shape[-2] % block
    if missing:
        real = torch.ones(n, dtype=torch.bool, device=q.device) if real is None else real
        real = F.pad(real, (0, missing))
        q, k, v = (F.pad(x, (0, 0, 0, missing)) for x in (q, k, v))
    listed = _listed((n + missing) // block, window, global_blocks, random_blocks, seed)
    attend_by = attend_back if causal else bigbird_by_kernel
    attention = partial(attend_by, neighbours=listed, block=block)
    return hiding(attention, q, k, v, real)[..., :n, :]


VARIANT = Variant(
    name="BigBird",
    function=bigbird_attention,
    rule=rule,
    twin="the same, the listed blocks as its mask",
    example=lambda n, d_k: {"block": 4, "window": 3, "global_blocks": 1, "random_blocks": 1},
    experiment=lambda n, d_k: {"block": 8, "window": 3, "global_blocks": 1, "random_blocks": 2},
    benchmark=lambda n, d_k: {"block": 64, "window": 3, "global_blocks": 2, "random_blocks": 3},
    causal=True,
)
