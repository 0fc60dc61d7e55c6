"""Weights turn many values into one for each query."""

import torch

from course_lib.attention import weighted_sum
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=weighted_sum,
    lesson="02",
    title="Many values become one",
    minutes=5,
    difficulty=1,
    hints=(
        "One query has the weights 0.9 and 0.1. Which two vectors are these weights of, and what "
        "is done with the products?",
        "Every key has a weight and a value, and the sum runs over the keys. Which axis of the "
        "weights is that, and which axis of v?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "one query, two keys", (draw.normal(1, 2).softmax(-1), draw.normal(2, 3))
    yield "as many queries as keys", (draw.normal(3, 3).softmax(-1), draw.normal(3, 4))
    yield "four queries, three keys", (draw.normal(4, 3).softmax(-1), draw.normal(3, 5))
    less_than_one = draw.normal(2, 4).softmax(-1) * torch.tensor([[0.0], [0.5]])
    yield "weights that sum to 0 and to a half", (less_than_one, draw.normal(4, 3))
    yield "a batch", (draw.normal(2, 4, 5).softmax(-1), draw.normal(2, 5, 3))
    yield "two batch dimensions", (draw.normal(3, 2, 4, 6).softmax(-1), draw.normal(3, 2, 6, 5))
    yield "one key", (draw.normal(4, 1).softmax(-1), draw.normal(1, 3))


@exercise.requires("all the weight on one key returns that key's value")
def one_key(answer, draw: Draw):
    v, order = draw.normal(4, 3), torch.tensor([2, 0, 3])
    return torch.allclose(answer(torch.eye(4)[order], v), v[order], atol=1e-6)


@exercise.requires("equal weights return the mean of the values")
def equal_weights(answer, draw: Draw):
    v = draw.normal(4, 3)
    return torch.allclose(answer(torch.full((2, 4), 0.25), v), v.mean(0).expand(2, 3), atol=1e-6)


@exercise.mistake(raises=RuntimeError)
def weights_transposed(weights, v):
    """The weights were turned over: each value was weighed by what the queries at its own place
    give away. Whose weights should row i of the result use?"""
    return weights.mT @ v


@exercise.mistake(raises=RuntimeError)
def values_first(weights, v):
    """This is v @ weights. A row of the result averages the rows of v, by the weights of one query:
    which of the two factors has a row for each query?"""
    return v @ weights


@exercise.mistake
def not_summed(weights, v):
    """The weighted values are all there, and nothing has been summed: each query still has one
    vector a key. Which axis should be gone?"""
    return weights.unsqueeze(-1) * v.unsqueeze(-3)


@exercise.mistake
def mean_over_keys(weights, v):
    """The sum was divided by the number of keys once more. The weights of a row sum to one: which
    division have they been through already?"""
    return weights @ v / v.shape[-2]


@exercise.mistake
def divided_by_the_sum(weights, v):
    """The sum was divided by the sum of the weights. That changes nothing where they sum to one;
    what does a query get whose weights are all 0, and what should it get?"""
    return weights @ v / weights.sum(-1, keepdim=True)


@exercise.mistake
def softmax_again(weights, v):
    """The weights went through a softmax again, so they are more alike than what came in. They are
    weights already, not scores."""
    return weights.softmax(-1) @ v


@exercise.mistake
def the_largest_only(weights, v):
    """Each query got one value whole, that of its largest weight. What should the other keys
    contribute, when their weights are not zero?"""
    return torch.nn.functional.one_hot(weights.argmax(-1), v.shape[-2]).to(v.dtype) @ v


@exercise.mistake
def result_transposed(weights, v):
    """The result lies on its side, with one column a query. Rows are tokens: which factor comes
    first?"""
    return v.mT @ weights.mT


@exercise.mistake(raises=RuntimeError)
def entry_by_entry(weights, v):
    """Each key's weight met the value entry by entry, without an axis of its own. A weight is one
    number for a whole vector: what shape must it have to reach all of it?"""
    return (weights * v).sum(-2)


@exercise.alternative
def matrix_product(weights, v):
    return torch.matmul(weights, v)


@exercise.alternative
def one_key_after_another(weights, v):
    found = weights.new_zeros(*weights.shape[:-1], v.shape[-1])
    for j in range(v.shape[-2]):
        found = found + weights[..., j : j + 1] * v[..., j : j + 1, :]
    return found
