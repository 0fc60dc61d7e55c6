"""Window attention: every word looks at its neighbours only (lesson 12).

Time and memory for n words: O(n width d) and O(n d), forward and backward.
Source: Beltagy et al. 2020 ("Longformer"), section 3.1 ("sliding window").
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.efficient.tiled import attend, spans

ROWS = 128  # queries a tile: more waste scores that the mask hides, fewer cost calls


def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    # measure how far apart each two words stand
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

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    n, reach = q.shape[-2], width // 2
    places, tiles = torch.arange(n, device=q.device), []
    # cut the queries into blocks
    for rows in spans(n, ROWS):
        # find the stretch of keys that any query of the block may see
        keys = slice(max(0, rows.start - reach), min(n, rows.stop + reach))
        # hide the pairs in it that are too far apart
        distance = (places[rows].unsqueeze(-1) - places[keys]).abs()
        tiles.append((rows, [keys], distance <= reach))
    # attend in each block to its own stretch
    found, _ = attend(q, k, v, tiles)
    return found
