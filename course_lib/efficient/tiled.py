"""Tiled attention: exact, though no more than one tile of the scores is ever there (lesson 12).

Time O(n^2 d) as dense attention, forward and backward; memory O(n d) in place of O(n^2).
Source: Dao et al. 2022 ("FlashAttention"), algorithms 1 and 4.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

LOG2_E = math.log2(math.e)  # scores are counted in bits: 2^x takes a third of the time of e^x

# a rectangle of the scores: its queries, its keys, and who may look at whom, None for all; the mask
# is (row, key), or (batch, row, key) with all batch dimensions made one
Tile = tuple[slice, slice, Bool[Tensor, "..."] | None]


def spans(n: int, size: int) -> list[slice]:
    """Cut n words into spans of `size`; the last one may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    # let each block of queries meet each block of keys
    queries, others = spans(q.shape[-2], block), spans(k.shape[-2], block)
    tiles = [(rows, keys, None) for rows in queries for keys in others]
    # go through the tiles: keep each row's peak, its sum of exponentials and its sum of values,
    # and shrink both sums whenever the peak rises
    found, _ = attend(q, k, v, tiles)
    return found


def attend(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    tiles: list[Tile],
) -> tuple[Float[Tensor, "... query d_v"], Float[Tensor, "... query"]]:
    """Attend to the pairs that the tiles cover, and return log_total beside the result.

    o_i = sum_j exp(s_ij - log_total_i) v_j, s_ij = q_i . k_j / sqrt(d_k), log_total_i =
    log sum_j exp(s_ij), over the pairs in a tile (each pair in one at most). A row that sees
    nothing gives zeros, and minus infinity. Time O(d) a pair; memory O(n d), and one tile.
    """
    flat = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    found, log_total = _Attend.apply(*flat, tiles)
    return found.view(*q.shape[:-1], v.shape[-1]), log_total.view(q.shape[:-1])


class _Attend(torch.autograd.Function):
    """The scores s = q k^T are not kept: going back, each tile is computed again."""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, tiles: list[Tile]):
        """Softmax online (Milakov and Gimelshein 2018, algorithm 3), then the average."""
        found = v.new_zeros(*q.shape[:-1], v.shape[-1])
        total = q.new_zeros(*q.shape[:-1], 1)
        # the lowest number there is, since minus infinity less itself is none
        peak = torch.full_like(total, torch.finfo(q.dtype).min)
        for rows, keys, mask in tiles:
            scores = _scores(q[:, rows], k[:, keys], mask)
            before = peak[:, rows]
            risen = torch.maximum(before, scores.amax(-1, keepdim=True))
            weights = scores.sub_(risen).exp2_()
            shrink = (before - risen).exp2_()
            total[:, rows].mul_(shrink).add_(weights.sum(-1, keepdim=True))
            found[:, rows].mul_(shrink).baddbmm_(weights, v[:, keys])
            peak[:, rows] = risen
        log_total = (peak + total.log2()) / LOG2_E
        total.masked_fill_(total == 0, 1)
        found /= total
        ctx.save_for_backward(q, k, v, found, peak, total)
        ctx.tiles = tiles
        return found, log_total

    @staticmethod
    @once_differentiable
    def backward(ctx, d_found: Tensor, d_log_total: Tensor):
        """With w = 2^(s - peak) / total: dS = w (dO V^T - sum(dO O) + d log_total)."""
        q, k, v, found, peak, total = ctx.saved_tensors
        d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
        scale = q.shape[-1] ** -0.5
        for rows, keys, mask in ctx.tiles:
            weights = _scores(q[:, rows], k[:, keys], mask).sub_(peak[:, rows]).exp2_()
            # divide by the totals where it takes the fewest divisions
            d_out = d_found[:, rows] / total[:, rows]
            shift = (d_out * found[:, rows]).sum(-1, keepdim=True)
            shift -= d_log_total[:, rows] / total[:, rows]
            d_v[:, keys].baddbmm_(weights.mT, d_out)
            d_scores = torch.bmm(d_out * scale, v[:, keys].mT).sub_(shift * scale).mul_(weights)
            d_q[:, rows].baddbmm_(d_scores, k[:, keys])
            d_k[:, keys].baddbmm_(d_scores.mT, q[:, rows])
        return d_q, d_k, d_v, None


def _scores(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    scores = torch.bmm(q * (LOG2_E * q.shape[-1] ** -0.5), k.mT)
    return scores if mask is None else scores.masked_fill_(~mask, float("-inf"))
