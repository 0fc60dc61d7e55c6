"""Tiled attention: exact, though no more than one tile of the scores is ever there (lesson 13).

Time O(n^2 d) as dense attention, forward and backward; memory O(n d) in place of O(n^2), backward
too where `tiled_by_kernel` or `tiled_gradients` computes the tiles again.
Source: Dao et al. 2022 ("FlashAttention"), algorithms 1 and 4.
"""

from functools import partial

import torch
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
    rows = []
    for queries in q.split(block, dim=-2):
        # begin with a maximum below every score, and with empty sums
        peak = torch.full_like(queries[..., :1], -torch.inf)
        total, output = 0.0, 0.0
        for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2), strict=True):
            # score one tile, and raise the maximum
            scores = queries @ keys.mT / q.shape[-1] ** 0.5
            risen = torch.maximum(peak, scores.amax(-1, keepdim=True))
            # rescale what was summed before, and add the tile
            shrink, weights = (peak - risen).exp(), (scores - risen).exp()
            total = shrink * total + weights.sum(-1, keepdim=True)
            output = shrink * output + weights @ values
            peak = risen
        # divide once, when all keys have been seen
        rows.append(output / total)
    return torch.cat(rows, dim=-2)


def tiled_gradients(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    output: Float[Tensor, "... query d_v"],
    log_total: Float[Tensor, "... query"],
    d_output: Float[Tensor, "... query d_v"],
    block: int,
) -> tuple[
    Float[Tensor, "... query d_k"], Float[Tensor, "... key d_k"], Float[Tensor, "... key d_v"]
]:
    """Return the gradients of q, k and v, with each tile of weights computed again.

    P_ij = exp(s_ij - L_i), where L_i = log sum_j exp(s_ij) is `log_total`, s_ij = q_i . k_j /
    sqrt(d_k), and `output` is P V. With dP = dO V^T: dV = P^T dO, dS = P (dP - sum(dO O)),
    dQ = dS K / sqrt(d_k), dK = dS^T Q / sqrt(d_k). Time O(n^2 d); memory O(n d + block^2): no
    tensor holds a row of n scores. `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 4.
    """
    scale = q.shape[-1] ** -0.5
    d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        # sum up output times its gradient, once for each query
        shift = (d_output[..., rows, :] * output[..., rows, :]).sum(-1, keepdim=True)
        for j in range(0, k.shape[-2], block):
            keys = slice(j, j + block)
            # compute the weights of this tile again
            scores = scale * q[..., rows, :] @ k[..., keys, :].mT
            weights = (scores - log_total[..., rows].unsqueeze(-1)).exp()
            # go back through the average of values, then through the softmax
            d_weights = d_output[..., rows, :] @ v[..., keys, :].mT
            d_scores = weights * (d_weights - shift)
            # add what this tile gives to queries, keys and values
            d_q[..., rows, :] += scale * d_scores @ k[..., keys, :]
            d_k[..., keys, :] += scale * d_scores.mT @ q[..., rows, :]
            d_v[..., keys, :] += weights.mT @ d_output[..., rows, :]
    return d_q, d_k, d_v


def tiled_by_kernel(q: Queries, k: Keys, v: Values, block: int) -> Output:
    """Attend as `tiled_attention` does, by the kernel: fast, and forward and backward O(n d)."""
    queries, others = spans(q.shape[-2], block), spans(k.shape[-2], block)
    return attend(q, k, v, [(rows, [keys], None) for rows in queries for keys in others])[0]


def rule(
    q: Queries, k: Keys, v: Values, mask: Mask = None, *, block: int = TILE, causal: bool = False
) -> Output:
    """Attend to all tokens, with `causal` to all up to itself: exactly, and keep no square."""
    real, causal = read_mask(mask, q, k, causal)
    everywhere = partial(tiled_by_kernel, block=block)
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
