"""A text summed up in a few projected tokens, and attention to these."""

import torch
from torch.nn import functional as F

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.efficient.linformer import linformer_attention
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=linformer_attention,
    lesson="14",
    title="A thousand tokens in sixteen",
    minutes=5,
    difficulty=2,
    hints=(
        "A column of e says how much each of the n tokens gives to one projected key. Which "
        "product of e and the keys mixes tokens, and leaves the columns of a key alone?",
        "Write the shapes of Q, E, K, F and V below the formula. Which shape has each product, and "
        "which has the matrix of weights?",
        "A product of three matrices can be computed from the left or from the right, and gives "
        "the same numbers. Which of the two ways makes n x n of them?",
    ),
    clauses={
        "this is dense attention": "projected keys that are the tokens",
        "otherwise it can approximate it": GIVEN,
        "holds tokens from both sides": GIVEN,
        "Time O": GIVEN,
        "no tensor holds n x n numbers": "a long text never makes",
    },
    forbidden=(*FUSED_ATTENTION, "course_lib.efficient.kernel.attend"),
)


def tokens(draw: Draw, *shape: int, d_k: int, d_v: int, mixtures: int):
    return (
        draw.normal(*shape, d_k),
        draw.normal(*shape, d_k),
        draw.normal(*shape, d_v),
        draw.normal(shape[-1], mixtures) / shape[-1] ** 0.5,
        draw.normal(shape[-1], mixtures) / shape[-1] ** 0.5,
    )


@exercise.cases
def cases(draw: Draw):
    yield "three tokens in two", tokens(draw, 3, d_k=2, d_v=4, mixtures=2)
    yield "seven tokens in four", tokens(draw, 7, d_k=3, d_v=5, mixtures=4)
    yield "as many projected keys as tokens", tokens(draw, 5, d_k=3, d_v=2, mixtures=5)
    yield "all in one projected key", tokens(draw, 4, d_k=3, d_v=2, mixtures=1)
    yield "one token", tokens(draw, 1, d_k=4, d_v=3, mixtures=2)
    yield "a batch of texts", tokens(draw, 2, 6, d_k=5, d_v=4, mixtures=3)
    yield "two batch dimensions", tokens(draw, 3, 2, 5, d_k=3, d_v=6, mixtures=4)
    yield "as many tokens as each has numbers", tokens(draw, 4, d_k=4, d_v=3, mixtures=2)


@exercise.requires("a long text never makes a tensor of n x n, and its results are right", points=2)
def no_square(answer, draw: Draw):
    n = 1024
    inputs = tokens(draw, n, d_k=2, d_v=3, mixtures=5)
    found = answer(*inputs, max_numel=n * n // 32)
    return torch.allclose(found, linformer_attention(*inputs), atol=1e-4)


@exercise.requires("projected keys that are the tokens themselves give dense attention")
def identity(answer, draw: Draw):
    q, k, v, _, _ = tokens(draw, 6, d_k=3, d_v=4, mixtures=1)
    found = answer(q, k, v, torch.eye(6), torch.eye(6))
    return torch.allclose(found, scaled_dot_product_attention(q, k, v), atol=1e-5)


@exercise.requires("the order of projected keys means nothing, that of keys against values does")
def mixtures_in_any_order(answer, draw: Draw):
    q, k, v, e, f = tokens(draw, 7, d_k=3, d_v=4, mixtures=3)
    found = answer(q, k, v, e, f)
    return torch.allclose(
        answer(q, k, v, e.flip(-1), f.flip(-1)), found, atol=1e-5
    ) and not torch.allclose(answer(q, k, v, e.flip(-1), f), found, atol=1e-3)


@exercise.requires("large scores give right results, whether they rise or fall")
def large_scores(answer, draw: Draw):
    q, _, v, _, f = tokens(draw, 6, d_k=3, d_v=4, mixtures=6)
    q = 1 + q.abs()
    # from one projected key to the next the scores rise, or fall, by more than a thousand
    rising = 1000 * torch.arange(1.0, 7.0).unsqueeze(-1).repeat(1, 3)
    return all(
        torch.allclose(
            answer(q, keys, v, torch.eye(6), f),
            scaled_dot_product_attention(q, keys, f.mT @ v),
            atol=1e-3,
        )
        for keys in (rising, -rising)
    )


def attend(q, k, v, scale=None):
    return torch.softmax(q @ k.mT / (scale or q.shape[-1] ** 0.5), -1) @ v


@exercise.mistake(raises=MemoryError)
def scores_first(q, k, v, e, f):
    """The scores of all n x n pairs were made first, and mixed afterwards. From which side can Q
    K^T E be computed more cheaply?"""
    return torch.softmax(q @ k.mT @ e / q.shape[-1] ** 0.5, -1) @ (f.mT @ v)


@exercise.mistake
def exchanged(q, k, v, e, f):
    """The keys were mixed by f and the values by e: the two have changed places."""
    return attend(q, f.mT @ k, e.mT @ v)


@exercise.mistake
def one_projection(q, k, v, e, f):
    """Keys and values were both mixed by e: `f` changes nothing."""
    return attend(q, e.mT @ k, e.mT @ v)


@exercise.mistake
def the_other_projection(q, k, v, e, f):
    """Keys and values were both mixed by f: `e` changes nothing."""
    return attend(q, f.mT @ k, f.mT @ v)


stock.unscaled(exercise)
stock.scaled_by_values(exercise)


@exercise.mistake
def scaled_by_mixtures(q, k, v, e, f):
    """The scores were divided by the root of the number of projected keys. A score is one dot
    product: how many terms does it sum?"""
    return attend(q, e.mT @ k, f.mT @ v, scale=e.shape[-1] ** 0.5)


@exercise.mistake(raises=MemoryError)
def weights_mixed(q, k, v, e, f):
    """The n x n weights were made, and mixed afterwards: that is dense attention with a projection
    behind it. Is the softmax inside or outside of what E does?"""
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
    return weights @ e @ (f.mT @ v)


@exercise.mistake
def no_softmax(q, k, v, e, f):
    """The scores averaged the projected keys themselves: there is no softmax, and a row of them may
    sum to anything."""
    return q @ (e.mT @ k).mT / q.shape[-1] ** 0.5 @ (f.mT @ v)


@exercise.mistake
def over_queries(q, k, v, e, f):
    """The softmax ran over the tokens: each key shares itself out, and the weights of one query
    do not sum to one. Which axis is that of the projected keys?"""
    return torch.softmax(q @ (e.mT @ k).mT / q.shape[-1] ** 0.5, -2) @ (f.mT @ v)


@exercise.mistake
def queries_mixed(q, k, v, e, f):
    """The queries were mixed too, so the result has a row for each projected key. Who asks: every
    token, or a summary?"""
    return attend(e.mT @ q, e.mT @ k, f.mT @ v)


@exercise.mistake(raises=MemoryError)
def not_mixed(q, k, v, e, f):
    """This is dense attention, and the projected keys were never made: `e` and `f` change
    nothing."""
    return attend(q, k, v)


@exercise.mistake
def averages(q, k, v, e, f):
    """The columns of e and f were brought to the sum one, so that projected keys became averages.
    The formula takes the projections as they are."""
    return attend(q, F.softmax(e, 0).mT @ k, F.softmax(f, 0).mT @ v)


@exercise.mistake
def no_peak(q, k, v, e, f):
    """Large scores give NaN: exp(90) no longer fits into a float32. What can be subtracted from all
    scores of a row without changing any weight?"""
    weights = (q @ (e.mT @ k).mT / q.shape[-1] ** 0.5).exp()
    return weights / weights.sum(-1, keepdim=True) @ (f.mT @ v)


@exercise.mistake
def peak_of_all(q, k, v, e, f):
    """The largest of all scores was subtracted in every row. A row far below it has nothing but
    zeros left, and divides 0 by 0: each row needs its own peak."""
    scores = q @ (e.mT @ k).mT / q.shape[-1] ** 0.5
    weights = (scores - scores.amax()).exp()
    return weights / weights.sum(-1, keepdim=True) @ (f.mT @ v)


@exercise.alternative
def by_matrices(q, k, v, e, f):
    return scaled_dot_product_attention(q, e.mT @ k, f.mT @ v)


@exercise.alternative
def by_turning_the_words(q, k, v, e, f):
    keys, values = k.transpose(-2, -1) @ e, v.transpose(-2, -1) @ f
    weights = torch.softmax((q @ keys) * q.shape[-1] ** -0.5, dim=-1)
    return torch.einsum("...qm,...vm->...qv", weights, values)
