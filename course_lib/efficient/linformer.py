"""Linformer: the n keys and values of a text become k projected ones (lesson 14).

Time and memory for n tokens: O(n k d) and O((n + k) d), forward and backward.
Source: Wang et al. 2020a ("Linformer"), eq. 7.
"""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.efficient.kernel import attend, spans
from course_lib.efficient.masking import (
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    read_mask,
    refuse_another_text,
)
from course_lib.efficient.variant import Variant
from course_lib.self_attention import scaled_dot_product_attention

TILE_QUERIES = 512  # queries a tile


def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k projected keys: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it can approximate it, where
    its matrix of weights has a low rank. A projected key holds tokens from both sides, so there
    is no causal form. Time O(n k d), memory O(n k), so no tensor holds n x n numbers. Source: Wang
    et al. 2020a, eq. 7, whose E and F are our e and f transposed. Raises ValueError for projections
    of another length than n, or of unequal shapes.
    """
    n = q.shape[-2]
    if e.shape != f.shape or len(e) != n:
        raise ValueError(
            f"e and f must both have n = {n} rows, one for each token, and equally many columns, "
            f"not the shapes {tuple(e.shape)} and {tuple(f.shape)}: were they made for texts of "
            "another length?"
        )
    # project the n keys to k, and the n values
    keys = einsum(e, k, "n k, ... n d -> ... k d")
    values = einsum(f, v, "n k, ... n d -> ... k d")
    # attend to the projected keys
    return scaled_dot_product_attention(q, keys, values)


def linformer_by_kernel(
    q: Queries, k: Keys, v: Values, e: Float[Tensor, "n k"], f: Float[Tensor, "n k"]
) -> Output:
    """Attend as `linformer_attention` does, by the kernel: in tiles of queries, O((n + k) d)."""
    keys, values = e.mT @ k, f.mT @ v
    everything = [slice(0, e.shape[-1])]
    return attend(q, keys, values, [(x, everything, None) for x in spans(len(e), TILE_QUERIES)])[0]


class Linformer(nn.Module):
    """Attend to `mixtures` of the tokens, learned for up to n tokens, the same in all heads.

    A shorter text is one filled up with zeros. Source: Wang et al. 2020a, section 4. Raises
    ValueError for longer texts.
    """

    def __init__(self, n: int, mixtures: int):
        super().__init__()
        self.e = nn.Parameter(torch.randn(n, mixtures) / n**0.5)
        self.f = nn.Parameter(torch.randn(n, mixtures) / n**0.5)

    def forward(self, q: Queries, k: Keys, v: Values, mask: Mask = None) -> Output:
        """Attend; hidden tokens are in no projected key."""
        refuse_another_text(q, k)
        n, longest = k.shape[-2], len(self.e)
        if n > longest:
            raise ValueError(
                f"these projections were made for texts of up to {longest} tokens, not {n}"
            )
        real, _ = read_mask(mask, q, k)
        if real is not None:
            k, v = (x * real.unsqueeze(-1) for x in (k, v))
        # a slice of all tokens would cost a copy of its gradient
        e, f = (x if n == longest else x[:n] for x in (self.e, self.f))
        return linformer_by_kernel(q, k, v, e, f)


VARIANT = Variant(
    name="Linformer",
    function=linformer_attention,
    rule=Linformer,
    twin="`F.linear`, `F.scaled_dot_product_attention`",
    example=lambda n, d_k: {"n": n, "mixtures": 5},
    experiment=lambda n, d_k: {"n": n, "mixtures": 32},
    benchmark=lambda n, d_k: {"n": n, "mixtures": 256},
)
