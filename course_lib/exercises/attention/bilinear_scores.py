"""A matrix between query and key: they may differ in size and still be compared."""

import torch

from course_lib.attention import bilinear_scores
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=bilinear_scores,
    lesson="02_scores",
    title="A matrix between query and key",
    minutes=6,
    difficulty=1,
    hints=(
        "A query has d_q numbers and a key d_k. Which of the two sizes do the rows of W have, and "
        "which its columns?",
        "What does a query become when it is multiplied by W, and what can be done with it then "
        "that could not be done before?",
    ),
    forbidden=(
        "torch.bilinear",
        "torch.nn.functional.bilinear",
        "torch.nn.Bilinear",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "one query, two keys", (draw.normal(1, 2), draw.normal(2, 3), draw.normal(2, 3))
    yield "queries as large as keys", (draw.normal(4, 3), draw.normal(2, 3), draw.normal(3, 3))
    yield "large queries, small keys", (draw.normal(3, 5), draw.normal(4, 2), draw.normal(5, 2))
    yield "a batch", (draw.normal(2, 3, 4), draw.normal(2, 5, 6), draw.normal(4, 6))
    yield (
        "two batch dimensions",
        (draw.normal(3, 2, 4, 5), draw.normal(3, 2, 6, 4), draw.normal(5, 4)),
    )
    yield "one key", (draw.normal(4, 2), draw.normal(1, 3), draw.normal(2, 3))
    yield (
        "as many queries as each has numbers",
        (draw.normal(4, 4), draw.normal(3, 5), draw.normal(4, 5)),
    )


@exercise.edges
def edges(draw: Draw):
    yield "as many queries as keys", (draw.normal(3, 4), draw.normal(3, 2), draw.normal(4, 2))


@exercise.requires("with the identity as W, the scores are dot products")
def identity(answer, draw: Draw):
    q, k = draw.normal(3, 4), draw.normal(5, 4)
    return torch.allclose(answer(q, k, torch.eye(4)), q @ k.mT, atol=1e-5)


@exercise.requires("exchanging queries and keys, and transposing W, transposes the scores")
def exchanged(answer, draw: Draw):
    q, k, w = draw.normal(3, 4), draw.normal(5, 2), draw.normal(4, 2)
    scores = answer(q, k, w)
    return scores.abs().max() > 0 and torch.allclose(answer(k, q, w.mT), scores.mT, atol=1e-5)


@exercise.mistake(raises=RuntimeError)
def w_transposed(q, k, w):
    """W was turned over before it met the queries. Its rows are as many as a query has numbers, so
    which side of W do the queries meet?"""
    return q @ w.mT @ k.mT


@exercise.mistake(raises=RuntimeError)
def w_on_the_keys(q, k, w):
    """W met the keys from the side that belongs to the queries. Its columns are as many as a key
    has numbers: which factor does that make room for?"""
    return q @ (k @ w).mT


@exercise.mistake(raises=RuntimeError)
def w_forgotten(q, k, w):
    """W plays no part: these are plain dot products, which need queries and keys of one size."""
    return q @ k.mT


@exercise.mistake
def transposed(q, k, w):
    """The scores lie the other way round: row i is to hold the scores of query i, one for each key.
    Whose scores stand in your rows?"""
    return k @ w.mT @ q.mT


@exercise.mistake(raises=RuntimeError)
def keys_not_transposed(q, k, w):
    """Queries times W has as many columns as a key has numbers, and k was multiplied as it lies.
    Rows meet columns: along which axis of k does one key lie?"""
    return q @ w @ k


@exercise.mistake(raises=RuntimeError)
def in_the_same_place(q, k, w):
    """Each query met the key in the same place only, and one number a pair came out. Should the
    third query not score the first key too?"""
    return ((q @ w) * k).sum(-1)


@exercise.mistake(raises=RuntimeError)
def all_axes_reversed(q, k, w):
    """Right for one sentence, not for a batch: all the axes are turned round, as `.T` turns them,
    so the batch ends up last. Which two axes did you mean?"""
    return q @ w @ k.permute(*range(k.dim() - 1, -1, -1))


@exercise.mistake
def scaled(q, k, w):
    """The scores were divided by sqrt(d_k), which the formula q W k does not: W is learned, and can
    take on any scale by itself."""
    return q @ w @ k.mT / k.shape[-1] ** 0.5


@exercise.mistake(raises=RuntimeError)
def w_on_both(q, k, w):
    """w was applied to the queries and to the keys. It is to be met once: it brings a query of size
    d_q to d_k, the size that the keys have already."""
    return (q @ w) @ (k @ w).mT


@exercise.mistake
def squashed(q, k, w):
    """A tanh too many: the projected queries were squashed, as the additive score does it. Which
    operations has q W k^T?"""
    return torch.tanh(q @ w) @ k.mT


@exercise.alternative
def in_one_pattern(q, k, w):
    return torch.einsum("...qi,ij,...kj->...qk", q, w, k)


@exercise.alternative
def carrying_the_keys(q, k, w):
    return torch.matmul(q, torch.matmul(w, k.transpose(-1, -2)))
