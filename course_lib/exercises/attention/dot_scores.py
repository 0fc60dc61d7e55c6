"""Every query meets every key in one dot product."""

import torch
from torch.nn import functional as F

from course_lib.attention import dot_scores
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=dot_scores,
    lesson="02",
    title="Every query meets every key",
    minutes=5,
    difficulty=1,
    hints=(
        "Two vectors have one dot product. How many have three queries and five keys, and which "
        "of them belong in the first row?",
        "In a product of two matrices the rows of the first meet the columns of the second. Are "
        "the keys rows or columns of k?",
        "In a batch, only the last two axes of k are to change places. Which of torch's ways to "
        "transpose leaves the axes before them alone?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "one query, two keys", (draw.normal(1, 3), draw.normal(2, 3))
    yield "as many queries as keys", (draw.normal(3, 4), draw.normal(3, 4))
    yield "five queries, two keys", (draw.normal(5, 3), draw.normal(2, 3))
    yield "a batch", (draw.normal(2, 3, 5), draw.normal(2, 4, 5))
    yield "a batch of one", (draw.normal(1, 4, 3), draw.normal(1, 5, 3))
    yield "two batch dimensions", (draw.normal(3, 2, 5, 4), draw.normal(3, 2, 6, 4))
    yield "one key", (draw.normal(4, 3), draw.normal(1, 3))
    yield "as many queries as each has numbers", (draw.normal(3, 3), draw.normal(5, 3))


@exercise.requires("exchanging queries and keys transposes the scores")
def exchanged(answer, draw: Draw):
    q, k = draw.normal(3, 4), draw.normal(5, 4)
    scores = answer(q, k)
    return scores.abs().max() > 0 and torch.allclose(answer(k, q), scores.mT, atol=1e-5)


@exercise.requires("a query twice as long scores twice as much")
def grows_with_length(answer, draw: Draw):
    q, k = draw.normal(3, 4), draw.normal(5, 4)
    scores = answer(q, k)
    return scores.abs().max() > 0 and torch.allclose(answer(2 * q, k), 2 * scores, atol=1e-5)


@exercise.mistake
def transposed(q, k):
    """The scores lie the other way round: row i is to hold the scores of query i, one for each key.
    Whose scores stand in your rows?"""
    return k @ q.mT


@exercise.mistake(raises=RuntimeError)
def not_transposed(q, k):
    """q was multiplied with k as it lies. A product of matrices lets rows meet columns: along which
    axis of k does one key lie?"""
    return q @ k


@exercise.mistake
def reshaped(q, k):
    """The shapes fit, but the keys were cut to pieces: `reshape` and `view` read the numbers of k
    in their old order and break the lines elsewhere. Which operation turns a table on its side?"""
    return q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])


@exercise.mistake(raises=RuntimeError)
def all_axes_reversed(q, k):
    """Right for one sentence, not for a batch: all the axes are turned round, as `.T` turns them,
    so the batch ends up last. Which two axes did you mean?"""
    return q @ k.permute(*range(k.dim() - 1, -1, -1))


@exercise.mistake(raises=RuntimeError)
def one_sentence_only(q, k):
    """Right for one sentence, not for a batch: this einsum names two axes of each input and has no
    room for any before them. What do three dots stand for in its pattern?"""
    return torch.einsum("qd,kd->qk", q, k)


@exercise.mistake(raises=RuntimeError)
def in_the_same_place(q, k):
    """Each query was multiplied with the key in the same place only, and one number a pair came
    out. Should the third query not score the first key too?"""
    return (q * k).sum(-1)


@exercise.mistake
def not_summed(q, k):
    """All products are there, and nothing has been summed: of each query and each key there is
    still a vector. What makes one number of it?"""
    return q.unsqueeze(-2) * k.unsqueeze(-3)


@exercise.mistake
def scaled(q, k):
    """These are dot products divided by sqrt(d_k). That division belongs to lesson 03; a plain dot
    product of [1, 1] with itself is 2."""
    return q @ k.mT / q.shape[-1] ** 0.5


@exercise.mistake
def cosines(q, k):
    """These are cosines: all lie between -1 and 1. What happens to a dot product when a query grows
    twice as long, and what happened to yours?"""
    return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT


@exercise.mistake
def weights_already(q, k):
    """These are weights, not scores: each row is positive and sums to one. Turning scores into
    weights is another function's work."""
    return torch.softmax(q @ k.mT, dim=-1)


@exercise.alternative
def matrix_product(q, k):
    return torch.matmul(q, k.transpose(-2, -1))


@exercise.alternative
def every_pair_spread_out(q, k):
    return (q[..., :, None, :] * k[..., None, :, :]).sum(dim=-1)
