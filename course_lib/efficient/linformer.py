"""Linformer: a text of n words is summed up in k keys and k values (lesson 12).

Time and memory for n words: O(n k d) and O((n + k) d), forward and backward.
Source: Wang et al. 2020a ("Linformer"), eq. 7.
"""

from einops import einsum
from jaxtyping import Float
from torch import Tensor

from course_lib.efficient.tiled import attend, spans

ROWS = 512  # queries a tile


def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    n = q.shape[-2]
    if e.shape != f.shape or len(e) != n:
        raise ValueError(
            f"e and f must both have n = {n} rows, one for each word, and equally many columns, "
            f"not the shapes {tuple(e.shape)} and {tuple(f.shape)}: were they made for texts of "
            "another length?"
        )
    # mix the n keys into k, and the n values
    keys = einsum(e, k, "n k, ... n d -> ... k d")
    values = einsum(f, v, "n k, ... n d -> ... k d")
    # attend to the mixtures
    everything = [slice(0, e.shape[-1])]
    found, _ = attend(q, keys, values, [(rows, everything, None) for rows in spans(n, ROWS)])
    return found
