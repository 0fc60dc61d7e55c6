"""Exact attention, though no more than one tile of the scores is ever there."""

import torch
from torch.nn import functional as F

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.efficient.tiled import tiled_attention
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=tiled_attention,
    lesson="13",
    title="Attention by tiles",
    minutes=12,
    difficulty=3,
    hints=(
        "Forget the maximum for a moment: two sums make a row of attention, one of exponentials, "
        "one of exponentials times values. Can each of them be had from the first keys, and then "
        "go on with the next?",
        "Now with a maximum. After the first tile the sums hold exp(s - 3), say. The second tile "
        "has a score of 5, and wants exp(s - 5). By which number must both sums be multiplied?",
        "Before the first tile there is no maximum at all. Which number is below every score, and "
        "what does it make of the first factor?",
        "When is the sum of values divided by the sum of exponentials: in each tile, or once?",
    ),
    clauses={
        "Time O": GIVEN,
        "holds a row of n scores": "whole_rows",
        "need not divide": "a last tile that is smaller",
    },
    # a result does not say how large its tiles were; the first maximum wipes out what was there
    equivalent=("block ignored", "0.0 -> -1.0", "0.0 -> 1.0"),
    forbidden=(
        *FUSED_ATTENTION,
        "course_lib.efficient.kernel.attend",
        "course_lib.efficient.window.window_attention",
        "course_lib.efficient.bigbird.bigbird_attention",
        "course_lib.efficient.memory_compressed.memory_compressed_attention",
    ),
)


def words(draw: Draw, *shape: int, d_k: int, d_v: int):
    return draw.normal(*shape, d_k), draw.normal(*shape, d_k), draw.normal(*shape, d_v)


@exercise.cases
def cases(draw: Draw):
    yield "one tile", (*words(draw, 5, d_k=2, d_v=4), 5)
    yield "two by two tiles", (*words(draw, 4, d_k=3, d_v=2), 2)
    yield "a last tile that is smaller", (*words(draw, 7, d_k=3, d_v=4), 3)
    yield "tiles of one score", (*words(draw, 5, d_k=4, d_v=3), 1)
    yield "one word", (*words(draw, 1, d_k=3, d_v=2), 1)
    yield "a batch of texts", (*words(draw, 2, 6, d_k=3, d_v=5), 4)
    yield "two batch dimensions", (*words(draw, 3, 2, 5, d_k=2, d_v=4), 2)
    yield "more keys than queries", (draw.normal(3, 2), draw.normal(5, 2), draw.normal(5, 4), 2)
    yield "as many words as each has numbers", (*words(draw, 4, d_k=4, d_v=2), 3)


@exercise.edges
def edges(draw: Draw):
    yield "more queries than keys", (draw.normal(5, 2), draw.normal(3, 2), draw.normal(3, 4), 2)
    yield "a block longer than the text", (*words(draw, 5, d_k=3, d_v=2), 8)


@exercise.requires("a long text never makes a tensor of n x n, and its results are right", points=2)
def no_square(answer, draw: Draw):
    n = 192
    q, k, v = words(draw, n, d_k=2, d_v=3)
    found = answer(q, k, v, 32, max_numel=n * n - 1)
    return torch.allclose(found, scaled_dot_product_attention(q, k, v), atol=1e-4)


@exercise.requires("whatever the size of a tile, the results are the same")
def any_tile(answer, draw: Draw):
    q, k, v = words(draw, 9, d_k=3, d_v=2)
    whole = answer(q, k, v, 9)
    same = [torch.allclose(answer(q, k, v, block), whole, atol=1e-5) for block in (1, 2, 4, 8)]
    return whole.std() > 0 and all(same)


@exercise.requires(
    "large scores give right results, whether the maximum comes first or last", points=2
)
def large_scores(answer, draw: Draw):
    q, k, v = words(draw, 8, d_k=4, d_v=3)
    rising = 1000 * k.abs().sort(dim=0).values
    # all of them so far from 0 that a peak has to begin below
    far = 1000 * torch.arange(20.0, 28.0).unsqueeze(-1).repeat(1, 4)
    inputs = [(1 + q.abs(), factor * far) for factor in (1, 1e6, 1e30)]
    return all(
        torch.allclose(answer(some_q, keys, v, 2), dense, atol=1e-3)
        for some_q, some in ((q.abs(), rising), *inputs)
        for keys in (some, -some, some.flip(0), -some.flip(0))
        for dense in [scaled_dot_product_attention(some_q, keys, v)]
    )


@exercise.requires("a long row of scores is never there whole")
def no_row(answer, draw: Draw):
    n, block = 256, 8
    q, k, v = draw.normal(block, 1), draw.normal(n, 1), draw.normal(n, 1)
    found = answer(q, k, v, block, max_numel=block * n - 1)
    return torch.allclose(found, scaled_dot_product_attention(q, k, v), atol=1e-4)


def online(q, k, v, block, **change):
    """Go through the keys block by block, in as many ways as there are mistakes."""
    q = q / change.get("scale", q.shape[-1] ** 0.5)
    peak = torch.full_like(q[..., :1], change.get("peak", -torch.inf))
    total = found = 0
    for keys, values in zip(k.split(block, -2), v.split(block, -2), strict=True):
        scores = q @ keys.mT
        risen = torch.maximum(peak, scores.amax(-1, keepdim=True))
        risen = scores.amax(-1, keepdim=True) if change.get("newest_peak") else risen
        shrink = risen - peak if change.get("grow") else peak - risen
        shrink = (shrink.clamp(max=0) if change.get("clamped") else shrink).exp()
        weights = (scores - risen).exp()
        total = total * (shrink if change.get("shrink_total", True) else 1)
        found = found * (shrink if change.get("shrink_found", True) else 1)
        total = total + weights.sum(-1, keepdim=True)
        found = found + weights @ values
        if change.get("divide_each"):
            found = found / total
        peak = risen
    return found if change.get("undivided") or change.get("divide_each") else found / total


def attend(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


@exercise.mistake(raises=MemoryError)
def dense(q, k, v, block):
    """All n x n scores were there at once. How many of them does one tile have?"""
    return scaled_dot_product_attention(q, k, v)


@exercise.mistake(raises=MemoryError)
def whole_rows(q, k, v, block):
    """Each block of queries had all of its scores at once: rows of n scores, however long the text.
    A tile has `block` keys too."""
    return torch.cat([attend(rows, k, v) for rows in q.split(block, -2)], dim=-2)


@exercise.mistake
def peak_from_a_number(q, k, v, block):
    """The maximum began at -1000, and scores far below that all have the exponential 0: their row
    divides 0 by 0. Which number is below every score?"""
    return online(q, k, v, block, peak=-1000.0)


@exercise.mistake
def no_peak(q, k, v, block):
    """Large scores give NaN: exp(90) no longer fits into a float32, and no maximum was subtracted.
    What must be done to the sums, when a later tile brings a higher maximum?"""
    total = found = 0
    for keys, values in zip(k.split(block, -2), v.split(block, -2), strict=True):
        weights = (q @ keys.mT / q.shape[-1] ** 0.5).exp()
        total, found = total + weights.sum(-1, keepdim=True), found + weights @ values
    return found / total


@exercise.mistake
def nothing_shrinks(q, k, v, block):
    """The maximum rose, and the sums stayed as they were: what they hold was measured from the old
    maximum, what is added from the new one."""
    return online(q, k, v, block, shrink_total=False, shrink_found=False)


@exercise.mistake
def values_do_not_shrink(q, k, v, block):
    """The sum of exponentials shrinks when the maximum rises, the sum of values does not. By which
    maximum were its weights measured?"""
    return online(q, k, v, block, shrink_found=False)


@exercise.mistake
def total_does_not_shrink(q, k, v, block):
    """The sum of values shrinks when the maximum rises, the sum of exponentials does not. By which
    maximum was it measured?"""
    return online(q, k, v, block, shrink_total=False)


@exercise.mistake
def grows(q, k, v, block):
    """The sums grew where they should have shrunk, beyond every number: nothing but NaN is left.
    The sums hold exp(s - old), and are to hold exp(s - new): what is the factor between them?"""
    return online(q, k, v, block, grow=True)


@exercise.mistake
def peak_of_the_newest_tile(q, k, v, block):
    """The maximum fell: where a later tile is lower than an earlier one, its own maximum was taken,
    and the sums grow beyond every number. Which of two maxima belongs to all the keys so far?"""
    return online(q, k, v, block, newest_peak=True)


@exercise.mistake
def newest_peak_never_grows(q, k, v, block):
    """The maximum is that of the newest tile: where an earlier tile was higher, its sums should
    have grown, and did not. Which of two maxima belongs to all the keys so far?"""
    return online(q, k, v, block, newest_peak=True, clamped=True)


@exercise.mistake
def mean_of_blocks(q, k, v, block):
    """Each block of keys had a softmax of its own, and the results were averaged: a block in which
    nothing fits weighs as much as one in which all does. What should a block weigh?"""
    blocks = zip(k.split(block, -2), v.split(block, -2), strict=True)
    return torch.stack([attend(q, *part) for part in blocks]).mean(0)


@exercise.mistake(raises=RuntimeError)
def diagonal_tiles(q, k, v, block):
    """Each block of queries met its own block of keys, and no other: the tiles beside the diagonal
    were never computed. How many tiles does a row of blocks have?"""
    tiles = zip(*(x.split(block, -2) for x in (q, k, v)), strict=False)
    return torch.cat([attend(*tile) for tile in tiles], dim=-2)


@exercise.mistake
def whole_blocks_alone(q, k, v, block):
    """Keys that fill no whole block were left out. What is the last block where `block` does not
    divide their number?"""
    n = k.shape[-2] // block * block
    if n == 0:
        return v.new_full((*q.shape[:-1], v.shape[-1]), torch.nan)
    return online(q, k[..., :n, :], v[..., :n, :], block)


@exercise.mistake
def sum_of_blocks(q, k, v, block):
    """Each block of keys had a softmax of its own, and the results were added: the weights of a row
    sum to the number of blocks."""
    blocks = zip(k.split(block, -2), v.split(block, -2), strict=True)
    return torch.stack([attend(q, *part) for part in blocks]).sum(0)


@exercise.mistake(raises=ValueError)
def diagonal_alone(q, k, v, block):
    """Each block of queries met its own block of keys only: the tiles along the diagonal. Which
    keys does a query need?"""
    parts = zip(*(x.split(block, -2) for x in (q, k, v)), strict=True)
    return torch.cat([attend(*part) for part in parts], dim=-2)


@exercise.mistake
def last_keys_left_out(q, k, v, block):
    """The words after the last whole tile were left out as keys. `block` need not divide n: how
    many tiles does it take?"""
    n = max(q.shape[-2] // block * block, min(block, q.shape[-2]))
    return online(q, k[..., :n, :], v[..., :n, :], block)


@exercise.mistake
def zeros_weigh(q, k, v, block):
    """The text was filled up with words of zeros, and these were looked at: the score 0 has the
    exponential 1."""
    missing = -q.shape[-2] % block
    return online(q, *(F.pad(x, (0, 0, 0, missing)) for x in (k, v)), block)


@exercise.mistake
def not_divided(q, k, v, block):
    """The sum of values was never divided by the sum of exponentials."""
    return online(q, k, v, block, undivided=True)


@exercise.mistake
def divided_in_each_tile(q, k, v, block):
    """The sum of values was divided in every tile, so what came first was divided again and again.
    When is the whole sum of exponentials known?"""
    return online(q, k, v, block, divide_each=True)


stock.unscaled(exercise)
stock.scaled_by_values(exercise)


@exercise.mistake
def peak_from_zero(q, k, v, block):
    """The maximum began at a number, such as 0, and scores far below it all have the exponential 0:
    their row divides 0 by 0. Which number is below every score?"""
    q = q / q.shape[-1] ** 0.5
    peak = total = found = torch.zeros_like(q[..., :1])
    for keys, values in zip(k.split(block, -2), v.split(block, -2), strict=True):
        scores = q @ keys.mT
        risen = torch.maximum(peak, scores.amax(-1, keepdim=True))
        shrink, weights = (peak - risen).exp(), (scores - risen).exp()
        total = total * shrink + weights.sum(-1, keepdim=True)
        found, peak = found * shrink + weights @ values, risen
    return found / total


@exercise.alternative
def keys_block_by_block(q, k, v, block):
    return online(q, k, v, block)


@exercise.alternative
def by_logarithms(q, k, v, block):
    rows = []
    for queries in q.split(block, -2):
        found, level = [], []
        for keys, values in zip(k.split(block, -2), v.split(block, -2), strict=True):
            scores = torch.einsum("...qd,...kd->...qk", queries, keys) * q.shape[-1] ** -0.5
            level.append(scores.logsumexp(-1))
            found.append(scores.softmax(-1) @ values)
        shares = torch.stack(level, dim=-1).softmax(-1)
        rows.append(torch.einsum("...qt,t...qv->...qv", shares, torch.stack(found)))
    return torch.cat(rows, dim=-2)
