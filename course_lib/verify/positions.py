"""Lesson 04: positions, held against other algorithms and another library."""

import math
from contextlib import contextmanager

import torch
from einops import rearrange
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import positions
from course_lib.verify.comparison import Inputs, compare


@contextmanager
def _float64():
    """Make what is built from sizes alone as exact as the inputs."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@compare(positions.sinusoidal, "Python's `math.sin` and `math.cos`, entry by entry")
@_float64()
def _sinusoidal(inputs: Inputs):
    n, half = inputs.sizes(2)
    x, table = inputs.normal(n, 2 * half), torch.empty(n, 2 * half)
    for i in range(n):
        for c in range(half):
            angle = i / math.pow(10000, c / half)
            table[i, 2 * c], table[i, 2 * c + 1] = math.sin(angle), math.cos(angle)
    return x * positions.sinusoidal(n, 2 * half), x * table


@compare(positions.shift_matrix, "complex products with `torch.polar`")
@_float64()
def _shift_matrix(inputs: Inputs):
    half, offset = inputs.sizes(2)
    x = inputs.normal(*inputs.batch(), half, 2)
    # a cosine is the real part of a turning point, a sine its imaginary part
    points = torch.view_as_complex(x.flip(-1))
    theirs = torch.view_as_real(points * _turns(torch.tensor(offset), half)).flip(-1)
    shift = positions.shift_matrix(offset, 2 * half)
    return x.flatten(-2) @ shift, theirs.flatten(-2)


@compare(positions.LearnedPositions, "`F.embedding`")
def _learned_positions(inputs: Inputs):
    n, spare, d_model = inputs.sizes(3)
    x, table = inputs.normal(*inputs.batch(), n, d_model), inputs.normal(n + spare, d_model)
    layer = positions.LearnedPositions(n + spare, d_model)
    return functional_call(layer, {"table": table}, x), x + F.embedding(torch.arange(n), table)


@compare(positions.relative_attention, "`F.softmax` of the visible pairs, query by query")
def _relative_attention(inputs: Inputs):
    (q, k, v), (m,) = inputs.query_key_value(), inputs.sizes(1, 0, 3)
    n_q, n_k, d_k = *q.shape[-2:-1], *k.shape[-2:]
    key_table, value_table = (inputs.normal(2 * m + 1, x.shape[-1]) for x in (k, v))
    mask, theirs = inputs.mask(n_q, n_k), []
    for i in range(n_q):
        seen = [j for j in range(n_k) if mask[i, j]]
        rows = [max(-m, min(m, j - i)) + m for j in seen]
        keys, values = k[..., seen, :] + key_table[rows], v[..., seen, :] + value_table[rows]
        scores = (q[..., i, None, :] * keys).sum(-1) / math.sqrt(d_k)
        theirs.append((F.softmax(scores, dim=-1).unsqueeze(-1) * values).sum(-2))
    ours = positions.relative_attention(q, k, v, key_table, value_table, mask)
    return ours, torch.stack(theirs, dim=-2)


@compare(positions.tree_distance, "the algorithm of Floyd and Warshall")
def _tree_distance(inputs: Inputs):
    (n,) = inputs.sizes(1)
    x = inputs.normal(n, n)
    # hang each word, in any order, under one that hangs there already
    order = x[0].argsort().tolist()
    heads, theirs = torch.full((n,), -1), torch.full((n, n), math.inf, dtype=x.dtype)
    theirs.fill_diagonal_(0)
    for place, word in enumerate(order[1:], start=1):
        (head,) = inputs.sizes(1, 0, place - 1)
        heads[word] = order[head]
        theirs[word, heads[word]] = theirs[heads[word], word] = 1
    for via in range(n):
        theirs = torch.minimum(theirs, theirs[:, via, None] + theirs[via])
    return x * positions.tree_distance(heads), x * theirs


@compare(positions.rotary, "complex products with `torch.polar`")
def _rotary(inputs: Inputs):
    n, half, first = inputs.sizes(3)
    x, places = inputs.normal(*inputs.batch(), n, 2 * half), torch.arange(n) * first
    turned = torch.complex(x[..., :half], x[..., half:]) * _turns(places, half)
    return positions.rotary(x, places), torch.cat([turned.real, turned.imag], dim=-1)


@compare(positions.rotary, "`RotaryEmbedding` of x-transformers", package="x_transformers")
def _rotary_of_another_library(inputs: Inputs):
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    (n, first), (power, slower) = inputs.sizes(2), inputs.sizes(2, 1, 3)
    half = 2**power
    x, places = inputs.normal(*inputs.batch(), n, 2 * half), torch.arange(n) * first
    # theirs finds its speeds in float32, which is exact for powers of two: each wave is 2, 4 or 8
    # times as slow as the one before it
    base = 2.0 ** (slower * half)
    angles, _ = RotaryEmbedding(2 * half, base=base).double()(places)
    # theirs has the two columns of each pair side by side
    flat = rearrange(x.reshape(-1, n, 2 * half), "batch n (side c) -> batch n (c side)", side=2)
    turned = rearrange(
        apply_rotary_pos_emb(flat, angles), "batch n (c side) -> batch n (side c)", side=2
    )
    return positions.rotary(x, places, base), turned.reshape(x.shape)


@compare(positions.rotary_attention, "`F.scaled_dot_product_attention`, its last queries")
def _rotary_attention(inputs: Inputs):
    n_q, before, half, d_v = inputs.sizes(4)
    n, batch = n_q + before, inputs.batch()
    q, k = inputs.normal(*batch, n, 2 * half), inputs.normal(*batch, n, 2 * half)
    v, places = inputs.normal(*batch, n, d_v), torch.arange(n)
    turned = positions.rotary(q, places), positions.rotary(k, places)
    whole = F.scaled_dot_product_attention(*turned, v, is_causal=True)
    return positions.rotary_attention(q[..., before:, :], k, v), whole[..., before:, :]


def _turns(places: Tensor, half: int) -> Tensor:
    """Return for each place the complex numbers that turn its pairs of columns."""
    speeds = torch.tensor([math.pow(10000, -c / half) for c in range(half)], dtype=torch.float64)
    angles = places.unsqueeze(-1) * speeds
    return torch.polar(torch.ones_like(angles), angles)


@compare(positions.alibi, "its formula, entry by entry")
@_float64()
def _alibi(inputs: Inputs):
    n_q, more, heads = _last_queries(inputs)
    scores = inputs.normal(heads, n_q, n_q + more)
    bias = [
        [
            [-abs(i - j) / 2 ** (8 * h / heads) for j in range(n_q + more)]
            for i in range(more, more + n_q)
        ]
        for h in range(1, heads + 1)
    ]
    return scores * positions.alibi(n_q, n_q + more, heads), scores * torch.tensor(bias)


@compare(positions.alibi, "`AlibiPositionalBias` of x-transformers", package="x_transformers")
@_float64()
def _alibi_of_another_library(inputs: Inputs):
    from x_transformers.x_transformers import AlibiPositionalBias

    n_q, more, heads = _last_queries(inputs)
    n_k = n_q + more
    scores = inputs.normal(heads, n_q, n_k)
    return scores * positions.alibi(n_q, n_k, heads), scores * AlibiPositionalBias(heads)(n_q, n_k)


def _last_queries(inputs: Inputs) -> tuple[int, int, int]:
    """Draw how many queries there are, how many keys before them, and how many heads."""
    n_q, more, power = inputs.sizes(3, 0, 4)
    return n_q + 1, more, 2**power
