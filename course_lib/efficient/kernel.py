"""The kernel of the variants: exact attention over the pairs of queries and keys that tiles cover.

Each variant says which tiles there are; `attend` goes through them, and no more than one tile of
the scores is ever there (lesson 13). Time O(d) a pair; memory O(n d), and one tile.
Source: Dao et al. 2022 ("FlashAttention"), algorithms 1 and 4.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

LOG2_E = math.log2(math.e)  # scores are counted in bits: 2^x takes a third of the time of e^x

# a rectangle of the scores: its queries; its keys, stretches that are put side by side; and who may
# look at whom, None for all: a mask (row, key), or (batch, row, key) with all batch dimensions made
# one; of truth values, or of numbers that are added to the scores: 0, or minus infinity to hide
Tile = tuple[slice, Sequence[slice], Tensor | None]


def spans(n: int, size: int) -> list[slice]:
    """Cut n tokens into spans of `size`; the last one may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def attend(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    tiles: Sequence[Tile],
    chunk: int | None = None,
) -> tuple[Float[Tensor, "... query d_v"], Float[Tensor, "... query"]]:
    """Attend to the pairs that the tiles cover, and return log_total beside the result.

    With `chunk`, for one text without batch dimensions, the queries of a tile are cut into chunks
    of this length, each of which sees a window of the tile's only stretch of keys: the first window
    begins with it, the last ends with it, each begins a chunk later than the one before, and their
    length is a multiple of a chunk's. The mask is then (chunk of queries, row, key).

    o_i = sum_j exp(s_ij - log_total_i) v_j, s_ij = q_i . k_j / sqrt(d_k), log_total_i =
    log sum_j exp(s_ij), over the pairs in a tile (each pair in one at most). A row that sees
    nothing gives zeros, and minus infinity. Time O(d) a pair; memory O(n d), and one tile.
    """
    flat = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    output, log_total = _Attend.apply(*flat, tiles, chunk)
    return output.view(*q.shape[:-1], v.shape[-1]), log_total.view(q.shape[:-1])


class _Attend(torch.autograd.Function):
    """The scores s = q k^T are not kept: going back, each tile is computed again."""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, tiles: Sequence[Tile], chunk: int | None):
        """Softmax online (Milakov & Gimelshein 2018, algorithm 3), then the average."""
        output = v.new_zeros(*q.shape[:-1], v.shape[-1])
        total = q.new_zeros(*q.shape[:-1], 1)
        # the lowest number there is, since minus infinity less itself is none
        peak = torch.full_like(total, torch.finfo(q.dtype).min)
        room = q.new_empty(0)
        for rows, keys, mask in tiles:
            cut = _cut(rows, keys, chunk)
            scores = _scores(cut.rows(q), cut.keys(k), mask, room)
            before = cut.rows(peak)
            risen = torch.maximum(before, scores.amax(-1, keepdim=True))
            weights = scores.sub_(risen).exp2_()
            shrink = (before - risen).exp2_()
            cut.rows(total).mul_(shrink).add_(weights.sum(-1, keepdim=True))
            cut.rows(output).mul_(shrink).add_(torch.bmm(weights, cut.keys(v)))
            before.copy_(risen)
        log_total = (peak + total.log2()) / LOG2_E
        total.masked_fill_(total == 0, 1)
        output /= total
        ctx.save_for_backward(q, k, v, output, peak, total)
        ctx.tiles, ctx.chunk = tiles, chunk
        return output, log_total

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output: Tensor, d_log_total: Tensor):
        """With w = 2^(s - peak) / total: dS = w (dO V^T - sum(dO O) + d log_total)."""
        q, k, v, output, peak, total = ctx.saved_tensors
        d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
        scale = q.shape[-1] ** -0.5
        room, another = q.new_empty(0), q.new_empty(0)
        for rows, keys, mask in ctx.tiles:
            cut = _cut(rows, keys, ctx.chunk)
            some_q, some_k, some_v = cut.rows(q), cut.keys(k), cut.keys(v)
            weights = _scores(some_q, some_k, mask, room).sub_(cut.rows(peak)).exp2_()
            # divide by the totals where it takes the fewest divisions
            d_out = cut.rows(d_output) / cut.rows(total)
            shift = (d_out * cut.rows(output)).sum(-1, keepdim=True)
            shift -= cut.rows(d_log_total) / cut.rows(total)
            cut.add_product(d_v, weights.mT, d_out)
            d_scores = _product(d_out, some_v.mT, another).sub_(shift).mul_(weights)
            cut.rows(d_q).add_(torch.bmm(d_scores, some_k), alpha=scale)
            cut.add_product(d_k, d_scores.mT, some_q * scale)
        return d_q, d_k, d_v, None, None


def _scores(q: Tensor, k: Tensor, mask: Tensor | None, room: Tensor) -> Tensor:
    scores = _product(q * (LOG2_E * q.shape[-1] ** -0.5), k.mT, room)
    if mask is None:
        return scores
    if mask.dtype is torch.bool:
        return scores.masked_fill_(~mask, float("-inf"))
    # an eighth of the time of filling, where one mask serves all texts
    return scores.add_(mask)


def _product(a: Tensor, b: Tensor, room: Tensor) -> Tensor:
    """Multiply two batches of matrices, into memory that one tile leaves to the next."""
    return torch.bmm(a, b, out=room.resize_(*a.shape[:-1], b.shape[-1]))


def _cut(rows: slice, keys: Sequence[slice], chunk: int | None) -> "_Stretches | _Windows":
    """Return what a tile is about, by whether its queries are cut into chunks."""
    return _Stretches(rows, keys) if chunk is None else _Windows(rows, keys, chunk)


class _Stretches:
    """A tile of each text in a batch: some queries, and stretches of keys put side by side."""

    def __init__(self, rows: slice, keys: Sequence[slice]):
        self._rows, self._keys = rows, keys

    def rows(self, x: Tensor) -> Tensor:
        """Return a view of the queries' part: (batch, row, d)."""
        return x[:, self._rows]

    def keys(self, x: Tensor) -> Tensor:
        """Return the keys' part, to which nothing may be written: (batch, key, d)."""
        stretches = [x[:, keys] for keys in self._keys]
        return stretches[0] if len(stretches) == 1 else torch.cat(stretches, dim=1)

    def add_product(self, x: Tensor, a: Tensor, b: Tensor) -> None:
        """Add the product of two batches of matrices to the keys' part."""
        parts = torch.bmm(a, b).split([_length(keys) for keys in self._keys], dim=1)
        for keys, part in zip(self._keys, parts, strict=True):
            x[:, keys].add_(part)


class _Windows:
    """A tile of one text: chunks of queries, each with its own window of one stretch of keys."""

    def __init__(self, rows: slice, keys: Sequence[slice], chunk: int):
        self._rows, self._chunk = rows, chunk
        (self._stretch,) = keys
        self._window = _length(self._stretch) - _length(rows) + chunk

    def rows(self, x: Tensor) -> Tensor:
        """Return a view of the queries' part: (chunk, row, d)."""
        return x[0, self._rows].unflatten(0, (-1, self._chunk))

    def keys(self, x: Tensor) -> Tensor:
        """Return the windows, to which nothing may be written, as they overlap: (chunk, key, d)."""
        return x[0, self._stretch].unfold(0, self._window, self._chunk).mT

    def add_product(self, x: Tensor, a: Tensor, b: Tensor) -> None:
        """Add the product of two batches of matrices to the windows, chunk of keys by chunk."""
        for number, part in enumerate(torch.bmm(a, b).split(self._chunk, dim=1)):
            start = self._stretch.start + number * self._chunk
            there = x[0, start : start + _length(self._rows)]
            there.unflatten(0, (-1, self._chunk)).add_(part)


def _length(span: slice) -> int:
    return span.stop - span.start
