"""A change of low rank written into the weight: one matrix again."""

import torch

from course_lib.assistant import merged
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=merged,
    lesson="17",
    title="One matrix again",
    minutes=5,
    difficulty=1,
    hints=(
        "Write the shapes under `a` and `b`. In which order does their product have the shape of "
        "the weight, (d_out, d_in)?",
        "The layer scales its change by alpha and the rank. Which axis of `a`, and which of `b`, "
        "is the rank?",
    ),
)


def drawn(draw: Draw, d_out: int, d_in: int, rank: int, alpha: float):
    return draw.normal(d_out, d_in), draw.normal(rank, d_in), draw.normal(d_out, rank), alpha


@exercise.cases
def cases(draw: Draw):
    yield "rank 1", drawn(draw, 2, 3, 1, 1.0)
    yield "rank 2, alpha 4", drawn(draw, 3, 5, 2, 4.0)
    yield "more numbers out than in, alpha a fraction", drawn(draw, 7, 6, 3, 0.5)
    yield "alpha as large as the rank", drawn(draw, 5, 6, 4, 4.0)
    yield "a square weight", drawn(draw, 4, 4, 2, 6.0)
    yield "three sizes the same", drawn(draw, 3, 3, 3, 2.0)
    yield "a rank larger than the weight", drawn(draw, 2, 3, 5, 1.5)
    w, a, b, _ = drawn(draw, 4, 3, 2, 0.0)
    yield "b is zero, as at first", (w, a, torch.zeros_like(b), 8.0)
    yield "alpha is zero", (w, a, b, 0.0)


@exercise.requires("the merged weight does what weight and change do one beside the other")
def does_the_same(answer, draw: Draw):
    w, a, b, alpha = drawn(draw, 5, 7, 2, 3.0)
    x = draw.normal(6, 7)
    together = x @ w.mT + alpha / 2 * (x @ a.mT @ b.mT)
    return torch.allclose(x @ answer(w, a, b, alpha).mT, together, atol=1e-4)


@exercise.requires("the weight has changed by a matrix of the rank")
def change_has_the_rank(answer, draw: Draw):
    w, a, b, alpha = drawn(draw, 8, 9, 3, 2.0)
    return torch.linalg.matrix_rank(answer(w, a, b, alpha) - w, atol=1e-3) == 3


@exercise.mistake
def not_scaled(weight, a, b, alpha):
    """The product was added as it is: `alpha` and the rank scale nothing, so the merged weight does
    not do what the layer did."""
    return weight + b @ a


@exercise.mistake
def scaled_by_alpha(weight, a, b, alpha):
    """The product was multiplied by alpha alone. By what does the layer divide alpha?"""
    return weight + alpha * (b @ a)


@exercise.mistake
def alpha_times_rank(weight, a, b, alpha):
    """The product was multiplied by alpha times the rank. alpha is divided by it."""
    return weight + alpha * len(a) * (b @ a)


@exercise.mistake
def divided_by_rank_alone(weight, a, b, alpha):
    """The product was divided by the rank, and `alpha` was never used."""
    return weight + b @ a / len(a)


@exercise.mistake
def divided_by_d_in(weight, a, b, alpha):
    """alpha was divided by d_in, the second size of `a`. The rank is its first."""
    return weight + alpha / a.shape[1] * (b @ a)


@exercise.mistake
def divided_by_d_out(weight, a, b, alpha):
    """alpha was divided by d_out, the first size of `b`. The rank is its second."""
    return weight + alpha / len(b) * (b @ a)


@exercise.mistake(raises=RuntimeError)
def exchanged(weight, a, b, alpha):
    """The product was taken in the wrong order: A B is (rank, rank), where it can be taken at all.
    Which of the two has the rows of the weight?"""
    return weight + alpha / len(a) * (a @ b)


@exercise.mistake(raises=RuntimeError)
def turned(weight, a, b, alpha):
    """The product is transposed: it has d_in rows, and the weight has d_out. Which of `a` and `b`
    comes first?"""
    return weight + alpha / len(a) * (a.mT @ b.mT)


@exercise.mistake
def subtracted(weight, a, b, alpha):
    """The change was subtracted: this takes a merged change out again."""
    return weight - alpha / len(a) * (b @ a)


@exercise.mistake
def change_alone(weight, a, b, alpha):
    """Only the change was returned. The frozen weight, with all that the model knows, is
    missing."""
    return alpha / len(a) * (b @ a)


@exercise.mistake
def all_of_it_scaled(weight, a, b, alpha):
    """The frozen weight was scaled too: the factor belongs to the product alone."""
    return alpha / len(a) * (weight + b @ a)


@exercise.mistake
def in_place(weight, a, b, alpha):
    """The result is right, but the change was written into the caller's weight: a second call would
    add it a second time. Return a new tensor."""
    weight += alpha / len(a) * (b @ a)
    return weight


@exercise.alternative
def a_sum_of_outer_products(weight, a, b, alpha):
    rank = b.size(1)
    change = torch.zeros_like(weight)
    for i in range(rank):
        change = change + torch.outer(b[:, i], a[i])
    return weight + change * (alpha / rank)


@exercise.alternative
def by_einsum(weight, a, b, alpha):
    return torch.einsum("or,ri->oi", b * alpha / a.shape[0], a) + weight
