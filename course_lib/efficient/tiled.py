"""Tiled attention: exact, though no more than one tile of the scores is ever there (lesson 13).

Time O(n^2 d) as dense attention, forward and backward; memory O(n d) in place of O(n^2).
Source: Dao et al. 2022 ("FlashAttention"), algorithms 1 and 4.
"""

from functools import partial

from jaxtyping import Float
from torch import Tensor

from course_lib.efficient.kernel import attend, spans
from course_lib.efficient.masking import Keys, Mask, Output, Queries, Values, hiding, read_mask
from course_lib.efficient.variant import Variant
from course_lib.efficient.window import attend_back

TILE = 256  # queries and keys a tile, unless the caller says otherwise


def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2): no tensor of the forward pass holds a row of n scores.
    `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    # let each block of queries meet each block of keys
    queries, others = spans(q.shape[-2], block), spans(k.shape[-2], block)
    tiles = [(rows, [keys], None) for rows in queries for keys in others]
    # go through the tiles: keep each query's running maximum, its sum of exponentials and its
    # weighted sum of values, and rescale both sums whenever the maximum rises
    output, _ = attend(q, k, v, tiles)
    return output


def rule(
    q: Queries, k: Keys, v: Values, mask: Mask = None, *, block: int = TILE, causal: bool = False
) -> Output:
    """Attend to all tokens, with `causal` to all up to itself: exactly, and keep no square."""
    real, causal = read_mask(mask, q, k, causal)
    everywhere = partial(tiled_attention, block=block)
    back = partial(attend_back, reach=q.shape[-2])
    return hiding(back if causal else everywhere, q, k, v, real)


VARIANT = Variant(
    name="tiled",
    function=tiled_attention,
    rule=rule,
    twin="`F.scaled_dot_product_attention`",
    example=lambda n, d_k: {"block": 16},
    experiment=lambda n, d_k: {},
    benchmark=lambda n, d_k: {},
    causal=True,
    another_text=True,
)
