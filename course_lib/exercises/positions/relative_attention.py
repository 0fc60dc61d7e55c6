"""Attention that knows how far away each word stands, by a vector for each distance."""

import torch

from course_lib.attention import softmax
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.positions import relative_attention, relative_index
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=relative_attention,
    lesson="04_distances",
    title="Attention that knows distances",
    minutes=15,
    difficulty=3,
    hints=(
        "You have built both parts: attention, and the number of the row for each distance. Which "
        "shape has a table of vectors when it is indexed by a whole table of numbers?",
        "Multiply the score out: q_i meets k_j, and q_i meets a_ij. The first is a product you "
        "know. Along which axis does the second one sum, and which axes stay?",
        "The weights average the values. With the same weights, and for each query its own row of "
        "vectors b_ij, what else do they average?",
        "The tables tell you the largest distance: how many rows have they, and which of them is "
        "distance 0?",
    ),
    clauses={
        "Both tables have 2m + 1 rows": GIVEN,
    },
    forbidden=FUSED_ATTENTION,
)


def words(draw: Draw, *batch: int, n_q: int, n_k: int, m: int, d_k: int, d_v: int):
    return (
        draw.normal(*batch, n_q, d_k),
        draw.normal(*batch, n_k, d_k),
        draw.normal(*batch, n_k, d_v),
        draw.normal(2 * m + 1, d_k),
        draw.normal(2 * m + 1, d_v),
    )


@exercise.cases
def cases(draw: Draw):
    yield "two words", words(draw, n_q=2, n_k=2, m=1, d_k=3, d_v=4)
    yield "words beyond the largest distance", words(draw, n_q=6, n_k=6, m=2, d_k=3, d_v=2)
    yield "more keys than queries", words(draw, n_q=3, n_k=7, m=2, d_k=2, d_v=4)
    yield "more queries than keys", words(draw, n_q=5, n_k=3, m=4, d_k=4, d_v=2)
    yield "all distances alike", words(draw, n_q=3, n_k=4, m=0, d_k=2, d_v=3)
    inputs = words(draw, n_q=4, n_k=5, m=2, d_k=3, d_v=2)
    yield "some keys masked", (*inputs, draw.mask(4, 5))
    nowhere = torch.tensor([[False, False, False], [True, False, True]])
    inputs = words(draw, n_q=2, n_k=3, m=1, d_k=4, d_v=5)
    yield "a query that may look nowhere", (*inputs, nowhere)
    inputs = words(draw, 2, n_q=4, n_k=6, m=2, d_k=3, d_v=5)
    yield "one row of mask for each sentence", (*inputs, draw.mask(2, 1, 6))
    inputs = words(draw, 3, 2, n_q=4, n_k=6, m=1, d_k=5, d_v=2)
    yield "two batch dimensions, one mask for all", (*inputs, draw.mask(4, 6))
    yield "one query", words(draw, n_q=1, n_k=4, m=2, d_k=3, d_v=2)
    yield "one key", words(draw, n_q=3, n_k=1, m=2, d_k=4, d_v=2)
    yield "as many queries as each has numbers", words(draw, n_q=3, n_k=5, m=2, d_k=3, d_v=4)
    yield "keys and values of one size", words(draw, n_q=3, n_k=5, m=2, d_k=4, d_v=4)


@exercise.edges
def edges(draw: Draw):
    yield "fewer words than the largest distance", words(draw, n_q=3, n_k=3, m=5, d_k=4, d_v=2)
    inputs = words(draw, n_q=3, n_k=4, m=1, d_k=2, d_v=3)
    column = torch.tensor([[True], [False], [True]])
    yield "one column of mask, which hides a query", (*inputs, column)


@exercise.requires("where all vectors of distances are zero, this is plain attention")
def plain(answer, draw: Draw):
    q, k, v, key_table, value_table = words(draw, n_q=4, n_k=5, m=2, d_k=3, d_v=2)
    found = answer(q, k, v, 0 * key_table, 0 * value_table)
    return torch.allclose(found, scaled_dot_product_attention(q, k, v), atol=1e-5)


@exercise.requires("a key table that fits the next word alone makes each word copy the next one")
def copies_the_next(answer, draw: Draw):
    q, k, v, key_table, value_table = words(draw, n_q=5, n_k=5, m=2, d_k=3, d_v=2)
    fits = torch.zeros_like(key_table)
    fits[3] = 100.0
    found = answer(torch.ones_like(q), 0 * k, v, fits, 0 * value_table)
    return torch.allclose(found[:-1], v[1:], atol=1e-4)


@exercise.requires("equal weights return the mean of the values and of their distances' vectors")
def equal_weights(answer, draw: Draw):
    q, k, v, key_table, value_table = words(draw, n_q=2, n_k=3, m=2, d_k=4, d_v=2)
    found = answer(0 * q, k, v, key_table, value_table)
    distances = torch.stack([value_table[2:5].mean(0), value_table[1:4].mean(0)])
    return torch.allclose(found, v.mean(0) + distances, atol=1e-5)


def attend(q, k, v, key_table, value_table, mask=None, index=None, scale=None, far=1.0):
    """Attend as the reference does, but for another index, scale or factor of the distances."""
    rows, d_k = key_table.shape
    if index is None:
        index = relative_index(q.shape[-2], k.shape[-2], rows // 2)
    distances = torch.einsum("...qd,qkd->...qk", q, key_table[index])
    scores = (q @ k.mT + far * distances) / (scale or d_k**0.5)
    weights = softmax(scores, mask)
    return weights @ v + torch.einsum("...qk,qkd->...qd", weights, value_table[index])


@exercise.mistake
def distances_unscaled(q, k, v, key_table, value_table, mask=None):
    """The distances entered the scores unscaled, so they count sqrt(d_k) times too much. Which
    terms does the division in the formula stand under?"""
    return attend(q, k, v, key_table, value_table, mask, far=q.shape[-1] ** 0.5)


@exercise.mistake
def key_table_unused(q, k, v, key_table, value_table, mask=None):
    """The distances move no score: key_table changes nothing. What is added to k_j before q_i
    meets it?"""
    return attend(q, k, v, key_table, value_table, mask, far=0.0)


@exercise.mistake
def value_table_unused(q, k, v, key_table, value_table, mask=None):
    """The weights know the distances, and the results do not: value_table is accepted and never
    used. What is added to v_j before it is averaged?"""
    return attend(q, k, v, key_table, 0 * value_table, mask)


@exercise.mistake
def turned_round(q, k, v, key_table, value_table, mask=None):
    """Left and right have changed places: the rows were looked up by i - j. Which row is that of
    the next word, the one before the middle or the one after it?"""
    return attend(q, k, v, key_table.flip(0), value_table.flip(0), mask)


@exercise.mistake(raises=IndexError)
def not_clipped(q, k, v, key_table, value_table, mask=None):
    """Words beyond the largest distance were looked up past the ends of the tables, or from the
    wrong end. Which row do all words share that are further to the right?"""
    middle = len(key_table) // 2
    index = torch.arange(k.shape[-2]) - torch.arange(q.shape[-2]).unsqueeze(-1) + middle
    return attend(q, k, v, key_table, value_table, mask, index=index)


@exercise.mistake
def not_moved(q, k, v, key_table, value_table, mask=None):
    """The distances were not moved to begin with 0, so those to the left were looked up from the
    end of the tables. Which row is that of distance 0?"""
    middle = len(key_table) // 2
    index = relative_index(q.shape[-2], k.shape[-2], middle) - middle
    return attend(q, k, v, key_table, value_table, mask, index=index)


@exercise.mistake
def queries_at_the_end(q, k, v, key_table, value_table, mask=None):
    """The queries were taken to be the last words among the keys. Here, as in `relative_index`, i
    and j both count from 0."""
    n_q, n_k, middle = q.shape[-2], k.shape[-2], len(key_table) // 2
    distance = torch.arange(n_k) - torch.arange(n_k - n_q, n_k).unsqueeze(-1)
    index = distance.clamp(-middle, middle) + middle
    return attend(q, k, v, key_table, value_table, mask, index=index)


@exercise.mistake
def keys_meet_distances(q, k, v, key_table, value_table, mask=None):
    """The keys met the vectors of the distances, where the formula has q_i . a_ij. Who asks how far
    away a word stands?"""
    rows, d_k = key_table.shape
    index = relative_index(q.shape[-2], k.shape[-2], rows // 2)
    distances = torch.einsum("...kd,qkd->...qk", k, key_table[index])
    weights = softmax((q @ k.mT + distances) / d_k**0.5, mask)
    return weights @ v + torch.einsum("...qk,qkd->...qd", weights, value_table[index])


@exercise.mistake
def distances_unweighted(q, k, v, key_table, value_table, mask=None):
    """The vectors of value_table were added up without weights, all equally, also those of words
    that a query hardly looks at. What belongs in front of v_j + b_ij?"""
    index = relative_index(q.shape[-2], k.shape[-2], len(key_table) // 2)
    words_alone = attend(q, k, v, key_table, 0 * value_table, mask)
    return words_alone + value_table[index].sum(-2)


@exercise.mistake
def distances_averaged(q, k, v, key_table, value_table, mask=None):
    """The vectors of value_table were averaged as if all words weighed the same, also those that a
    query hardly looks at. What belongs in front of v_j + b_ij?"""
    index = relative_index(q.shape[-2], k.shape[-2], len(key_table) // 2)
    return attend(q, k, v, key_table, 0 * value_table, mask) + value_table[index].mean(-2)


@exercise.mistake
def rows_as_distance(q, k, v, key_table, value_table, mask=None):
    """The number of rows was taken for the largest distance, and the numbers that no row has were
    cut off. For 2m + 1 rows, what is m, and which row is that of distance 0?"""
    rows = len(key_table)
    index = relative_index(q.shape[-2], k.shape[-2], rows).clamp(max=rows - 1)
    return attend(q, k, v, key_table, value_table, mask, index=index)


stock.unscaled(exercise)
stock.mask_inverted(exercise)
stock.ignored(exercise)
stock.nowhere_is_nan(
    exercise,
    "A query that may look nowhere gives NaN: torch.softmax shares out nothing but minus "
    "infinities. Your own softmax of lesson 02 knows such rows.",
)


stock.exchanged(exercise, "key_table", "value_table")


@exercise.mistake(raises=RuntimeError)
def key_table_for_both(q, k, v, key_table, value_table, mask=None):
    """key_table was looked up for the values as well, and value_table never. Which of the two has
    vectors of d_v numbers?"""
    return relative_attention(q, k, v, key_table, key_table, mask)


@exercise.alternative
def query_after_query(q, k, v, key_table, value_table, mask=None):
    rows, d_k = key_table.shape
    n_q, n_k, middle = q.shape[-2], k.shape[-2], rows // 2
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], n_k)
    found = []
    for i in range(n_q):
        index = [max(-middle, min(middle, j - i)) + middle for j in range(n_k)]
        scores = ((k + key_table[index]) * q[..., i : i + 1, :]).sum(-1) / d_k**0.5
        weights = softmax(scores, None if mask is None else mask[..., i, :])
        found.append((weights.unsqueeze(-1) * (v + value_table[index])).sum(-2))
    return torch.stack(found, dim=-2)


@exercise.alternative
def by_rows_of_the_tables(q, k, v, key_table, value_table, mask=None):
    rows = len(key_table)
    index = relative_index(q.shape[-2], k.shape[-2], rows // 2)
    index = index.expand(*q.shape[:-1], k.shape[-2])
    scores = (q @ k.mT + (q @ key_table.mT).gather(-1, index)) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    gathered = torch.zeros_like(weights[..., :1]).expand(*weights.shape[:-1], rows)
    return weights @ v + gathered.scatter_add(-1, index, weights) @ value_table
