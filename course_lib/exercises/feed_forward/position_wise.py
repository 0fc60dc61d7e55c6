"""The feed-forward network: each token goes through it by itself."""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import Draw, Exercise
from course_lib.feed_forward import feed_forward

exercise = Exercise(
    reference=feed_forward,
    lesson="05",
    title="A network for each token",
    minutes=6,
    difficulty=1,
    hints=(
        "A token has d_model numbers. How many has it after the first matrix, and how many after "
        "the second? Which bias has which of the two sizes?",
        "Where in the formula does max(0, ...) open, and where does it close? Which biases are "
        "inside?",
        "Without max(0, ...), two matrices in a row could be replaced by one. Which?",
    ),
    clauses={
        "No token meets another": "changing one token changes its own result",
    },
)


def network(draw: Draw, *batch: int, n: int, d_model: int, d_ff: int):
    return (
        draw.normal(*batch, n, d_model),
        draw.normal(d_model, d_ff),
        draw.normal(d_ff),
        draw.normal(d_ff, d_model),
        draw.normal(d_model),
    )


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", network(draw, n=2, d_model=3, d_ff=5)
    yield "four times as wide", network(draw, n=5, d_model=2, d_ff=8)
    yield "no wider than a token", network(draw, n=2, d_model=4, d_ff=4)
    yield "narrower than a token", network(draw, n=3, d_model=5, d_ff=2)
    yield "one token", network(draw, n=1, d_model=3, d_ff=7)
    _, *weights = network(draw, n=1, d_model=3, d_ff=6)
    yield "a single token, not in a sentence", (draw.normal(3), *weights)
    yield "a batch of sentences", network(draw, 3, n=4, d_model=2, d_ff=5)
    yield "two batch dimensions", network(draw, 2, 3, n=4, d_model=5, d_ff=6)


@exercise.edges
def edges(draw: Draw):
    # whole numbers: their sums are exact, in whatever order
    w_1, w_2 = draw.integers(-4, 5, 2, 6).float(), draw.integers(-4, 5, 6, 2).float()
    b_1 = draw.integers(60, 100, 6) * torch.tensor([1.0, -1, 1, -1, 1, -1])
    x, b_2 = draw.integers(-4, 5, 1, 2).float(), draw.integers(-4, 5, 2).float()
    yield "large hidden numbers", (x, w_1, b_1, w_2, b_2)


@exercise.requires("changing one token changes its own result, and no other")
def words_stay_apart(answer, draw: Draw):
    x, *weights = network(draw, n=5, d_model=4, d_ff=16)
    changed = torch.cat([x[:2], -x[2:3], x[3:]])
    moved = (answer(changed, *weights) - answer(x, *weights)).abs().amax(-1) > 1e-5
    return moved.tolist() == [False, False, True, False, False]


@exercise.requires("where every hidden number is negative, only the second bias is left")
def all_cut_off(answer, draw: Draw):
    x, w_1, b_1, w_2, b_2 = network(draw, n=3, d_model=4, d_ff=5)
    result = answer(0.01 * x, w_1, -1 - b_1.abs(), w_2, b_2.abs())
    return torch.allclose(result, b_2.abs().expand(3, 4), atol=1e-6)


@exercise.requires("doubling the token and both biases doubles the result")
def homogeneous(answer, draw: Draw):
    x, w_1, b_1, w_2, b_2 = network(draw, n=3, d_model=4, d_ff=7)
    once = answer(x, w_1, b_1, w_2, b_2)
    twice = answer(2 * x, w_1, 2 * b_1, w_2, 2 * b_2)
    return once.abs().max() > 0 and torch.allclose(twice, 2 * once, atol=1e-4)


@exercise.mistake
def linear(x, w_1, b_1, w_2, b_2):
    """Nothing is cut off between the two matrices, so the whole network is one matrix and one bias,
    however wide it is inside. What does max(0, ...) do to negative numbers?"""
    return (x @ w_1 + b_1) @ w_2 + b_2


@exercise.mistake
def cut_off_at_the_end(x, w_1, b_1, w_2, b_2):
    """The negative numbers were cut off at the end and not in the middle: no result can be
    negative, and the two matrices still act as one. What does max(0, ...) enclose?"""
    return torch.relu((x @ w_1 + b_1) @ w_2 + b_2)


@exercise.mistake
def cut_off_twice(x, w_1, b_1, w_2, b_2):
    """The negative numbers were cut off twice, in the middle and at the end, so no result can be
    negative. How many max does the formula have?"""
    return torch.relu(torch.relu(x @ w_1 + b_1) @ w_2 + b_2)


@exercise.mistake
def cut_off_at_the_start(x, w_1, b_1, w_2, b_2):
    """The token itself was cut off, before it met the first matrix. What does max(0, ...)
    enclose?"""
    return (torch.relu(x) @ w_1 + b_1) @ w_2 + b_2


@exercise.mistake
def bias_after_the_cut(x, w_1, b_1, w_2, b_2):
    """The first bias was added after the cut, so it can no longer decide what is cut off, and
    hidden numbers can be negative. Where does the bracket of max(0, ...) close?"""
    return (torch.relu(x @ w_1) + b_1) @ w_2 + b_2


@exercise.mistake
def first_bias_forgotten(x, w_1, b_1, w_2, b_2):
    """The first bias plays no part: for a token of zeros, only the second one is left. What should
    be added before the cut?"""
    return torch.relu(x @ w_1) @ w_2 + b_2


@exercise.mistake
def second_bias_forgotten(x, w_1, b_1, w_2, b_2):
    """The second bias plays no part: where every hidden number is cut off, the result is zero. What
    should it be?"""
    return torch.relu(x @ w_1 + b_1) @ w_2


@exercise.mistake
def both_biases_forgotten(x, w_1, b_1, w_2, b_2):
    """Neither bias plays any part: a token of zeros gives zeros. What should it give?"""
    return torch.relu(x @ w_1) @ w_2


@exercise.mistake
def by_gelu(x, w_1, b_1, w_2, b_2):
    """Behaves as if by a GELU, the smooth curve that GPT and BERT use. The formula of 2017 has an
    edge: what is the larger of 0 and -0.5?"""
    return F.gelu(x @ w_1 + b_1) @ w_2 + b_2


@exercise.mistake
def by_tanh(x, w_1, b_1, w_2, b_2):
    """The hidden numbers were squashed by a tanh, so a strong one counts no more than a middling
    one. Which numbers does max(0, ...) change, and which does it leave as they are?"""
    return torch.tanh(x @ w_1 + b_1) @ w_2 + b_2


@exercise.mistake
def by_sigmoid(x, w_1, b_1, w_2, b_2):
    """The hidden numbers were squashed by a sigmoid, so none of them is ever quite off. Which
    numbers does max(0, ...) change, and which does it leave as they are?"""
    return torch.sigmoid(x @ w_1 + b_1) @ w_2 + b_2


@exercise.mistake
def by_absolute_value(x, w_1, b_1, w_2, b_2):
    """Behaves as if by the absolute value: a negative number became positive, and should be cut
    off."""
    return (x @ w_1 + b_1).abs() @ w_2 + b_2


@exercise.mistake
def positive_cut_off(x, w_1, b_1, w_2, b_2):
    """The wrong side was cut off: the negative numbers are left. Is it the larger or the smaller of
    0 and the number that the formula keeps?"""
    return (x @ w_1 + b_1).clamp(max=0) @ w_2 + b_2


@exercise.mistake
def word_added(x, w_1, b_1, w_2, b_2):
    """The token was added to its own result. That is a residual connection, and lesson 07 will put
    one around this network: does the formula here have it?"""
    return x + feed_forward(x, w_1, b_1, w_2, b_2)


@exercise.mistake(raises=RuntimeError)
def matrices_transposed(x, w_1, b_1, w_2, b_2):
    """The matrices are the wrong way round. Each has a row for every number that goes in and a
    column for every number that comes out: were they transposed, as torch's Linear keeps them, or
    changed places?"""
    return F.linear(torch.relu(F.linear(x, w_1, b_1)), w_2, b_2)


@exercise.mistake(raises=RuntimeError)
def by_pythons_max(x, w_1, b_1, w_2, b_2):
    """Python's `max` asks whether one thing as a whole is larger than another, and a tensor has
    many numbers. Which of torch's functions compares them one by one?"""
    return max(0, x @ w_1 + b_1) @ w_2 + b_2


@exercise.mistake
def largest_alone(x, w_1, b_1, w_2, b_2):
    """Of all hidden numbers only the largest is left: `max` of one tensor is its largest entry.
    Which function compares each entry with 0?"""
    return (x @ w_1 + b_1).max().clamp(min=0) * w_2.sum(0) + b_2


@exercise.alternative
def by_torchs_linear(x, w_1, b_1, w_2, b_2):
    return F.linear(F.linear(x, w_1.mT, b_1).clamp(min=0), w_2.mT, b_2)


@exercise.alternative
def word_by_word(x, w_1, b_1, w_2, b_2):
    results = []
    for word in x.reshape(-1, x.shape[-1]):
        hidden = (word.unsqueeze(-1) * w_1).sum(0) + b_1
        hidden = torch.where(hidden > 0, hidden, torch.zeros_like(hidden))
        results.append((hidden.unsqueeze(-1) * w_2).sum(0) + b_2)
    return torch.stack(results).reshape(x.shape)
