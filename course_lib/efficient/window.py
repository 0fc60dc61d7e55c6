"""Window attention: every token looks at its neighbours only (lesson 13).

Time and memory for n tokens: O(n width d) and O(n d), forward and backward.
Source: Beltagy et al. 2020 ("Longformer"), section 3.1 ("sliding window").
"""

from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

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

TILE_QUERIES = 64  # queries a tile: more waste scores that the mask hides, fewer cost calls


def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each token see width // 2 tokens on either side, and itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    # measure the distance between each two tokens
    places = torch.arange(n)
    distance = (places.unsqueeze(-1) - places).abs()
    # let those see each other that are near enough
    return distance <= width // 2


def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d), so no tensor of the forward pass holds n x n numbers. Any n.
    Source: Beltagy et al. 2020, section 3.1.
    """
    n, reach, rows = q.shape[-2], width // 2, []
    for start in range(0, n, TILE_QUERIES):
        # find the stretch of keys that any query of this block may see
        stop = min(start + TILE_QUERIES, n)
        first, last = max(0, start - reach), min(stop + reach, n)
        # hide the pairs in this rectangle that are too far apart
        queries, keys = (
            torch.arange(*ends, device=q.device) for ends in ((start, stop), (first, last))
        )
        near = (queries.unsqueeze(-1) - keys).abs() <= reach
        # attend to this stretch alone
        some_k, some_v = k[..., first:last, :], v[..., first:last, :]
        rows.append(scaled_dot_product_attention(q[..., start:stop, :], some_k, some_v, near))
    return torch.cat(rows, dim=-2)


def window_by_kernel(q: Queries, k: Keys, v: Values, width: int) -> Output:
    """Attend as `window_attention` does, by the kernel: fast, and forward and backward O(n d)."""
    return attend(q, k, v, near_tiles(q.shape[-2], width // 2, width // 2, q.device))[0]


def near_tiles(n: int, back: int, ahead: int, device: torch.device) -> list[Tile]:
    """Cover the pairs with -ahead <= i - j <= back by a tile for each block of queries."""
    block, back, ahead = min(n, TILE_QUERIES), min(n, back), min(n, ahead)
    # in every block, a query sees one place further than the query before it
    everywhere = torch.full((block, back + block + ahead), float("-inf"), device=device)
    hidden = everywhere.tril(-1) + everywhere.triu(back + ahead + 1)
    tiles: list[Tile] = []
    for rows in spans(n, TILE_QUERIES):
        first = rows.start - back
        # the stretch is cut at the ends of the text, and the mask with it
        keys = slice(max(0, first), min(n, rows.stop + ahead))
        mask = hidden[: rows.stop - rows.start, keys.start - first : keys.stop - first]
        tiles.append((rows, [keys], mask))
    return tiles


def attend_back(q: Queries, k: Keys, v: Values, reach: int) -> Output:
    """Attend where 0 <= i - j <= reach: the causal window."""
    return attend(q, k, v, near_tiles(q.shape[-2], reach, 0, q.device))[0]


def rule(
    q: Queries, k: Keys, v: Values, mask: Mask = None, *, width: int, causal: bool = False
) -> Output:
    """Attend where abs(i - j) <= width // 2, with `causal` where 0 <= i - j <= width // 2."""
    refuse_another_text(q, k)
    real, causal = read_mask(mask, q, k, causal)
    both_sides = partial(window_by_kernel, width=width)
    back = partial(attend_back, reach=width // 2)
    return hiding(back if causal else both_sides, q, k, v, real)


VARIANT = Variant(
    name="window",
    function=window_attention,
    rule=rule,
    twin="`F.scaled_dot_product_attention`, the window as its mask",
    example=lambda n, d_k: {"width": 9},
    experiment=lambda n, d_k: {"width": 64},
    benchmark=lambda n, d_k: {"width": 256},
    causal=True,
)
