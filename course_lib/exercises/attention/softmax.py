"""Scores become weights: positive, and one in sum."""

import torch
from einops import EinopsError, reduce

from course_lib.attention import softmax
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION, SOFTMAX

exercise = Exercise(
    reference=softmax,
    lesson="02",
    title="Scores become weights",
    minutes=15,
    difficulty=2,
    hints=(
        "exp(90) no longer fits into a float32. What happens to the weights when the same number "
        "is subtracted from every score of a row? Which number would you choose?",
        "A masked key is to weigh nothing. Which score has the exponential 0?",
        "In a row with every key masked, what is the largest score, and what is the sum of the "
        "exponentials? Give each of the two a harmless stand-in before it is used.",
    ),
    clauses={
        "Large scores stay finite": "no_peak_subtracted",
        "Where `mask` is False the weight is 0": "score_of_zero",
        "a row with every key masked is all zeros": "mean_where_nothing_is_seen",
        "and so is its gradient": "gradient_is_nan",
    },
    # a row's weights do not depend on what is subtracted, nor a row of zeros on what divides it
    equivalent=("scores.detach() -> scores", "0.0 -> 1.0", "0.0 -> -1.0", "1.0 -> 2.0"),
    forbidden=(*SOFTMAX, *FUSED_ATTENTION),
)


@exercise.cases
def cases(draw: Draw):
    yield "two keys", (draw.normal(1, 2),)
    yield "three queries, five keys", (draw.normal(3, 5),)
    yield "some keys masked", (draw.normal(3, 4), draw.mask(3, 4))
    nowhere = torch.tensor([[False, False, False], [True, False, True]])
    yield "a row with every key masked", (draw.normal(2, 3), nowhere)
    yield "one mask for the whole batch", (draw.normal(2, 4, 3), draw.mask(4, 3))
    yield "two batch dimensions", (draw.normal(2, 3, 5, 4),)
    yield "one key", (draw.normal(3, 1),)


@exercise.edges
def edges(draw: Draw):
    yield "one row alone", (draw.normal(4), draw.mask(4))
    yield "one row of mask for all queries", (draw.normal(4, 6), draw.mask(1, 6))


@exercise.requires("each row of weights sums to one")
def rows_sum_to_one(answer, draw: Draw):
    weights = answer(draw.normal(3, 5))
    return torch.allclose(weights.sum(-1), torch.ones(3)) and (weights >= 0).all()


@exercise.requires("adding a number to a whole row changes nothing, however large it is", points=2)
def shifted(answer, draw: Draw):
    scores = draw.normal(2, 4)
    weights = answer(scores)
    far = answer(scores + torch.tensor([[1024.0], [-1024.0]]))
    return weights.abs().max() > 0 and torch.allclose(far, weights, atol=1e-3)


@exercise.requires("a row with every key masked is all zeros, the others are not", points=2)
def fully_masked(answer, draw: Draw):
    mask = torch.tensor([[False, False, False], [True, False, True]])
    weights = answer(draw.normal(2, 3), mask)
    only_key = answer(draw.normal(2, 1), mask[:, :1])
    zeros = (weights[0] == 0).all() and (only_key[0] == 0).all()
    return zeros and torch.allclose(weights[1].sum(), torch.tensor(1.0)) and only_key[1] == 1


@exercise.requires("a masked key weighs nothing, however large its score")
def masked_key(answer, draw: Draw):
    mask = torch.tensor([[True, False, True, True], [False, True, True, False]])
    weights = answer(draw.normal(2, 4) + torch.where(mask, -1e30, 1e30), mask)
    return (weights[~mask] == 0).all() and torch.allclose(weights.sum(-1), torch.ones(2))


@exercise.mistake
def large_negative_score(scores, mask=None):
    """A masked key has the score -1e9, a number that other scores may reach: below it, the masked
    key is the largest of its row. Which number is below all others?"""
    if mask is None:
        return torch.softmax(scores, -1)
    return torch.softmax(scores.masked_fill(~mask, -1e9), -1).masked_fill(~mask, 0.0)


@exercise.mistake
def one_peak_for_all(scores, mask=None):
    """A row far below the largest score of the whole tensor gives NaN: all its exponentials are 0,
    and so is their sum. Whose largest score should each row use?"""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    exponentials = torch.exp(scores - scores.max())
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / (total if mask is None else total + ~mask.any(-1, keepdim=True))


@exercise.mistake(raises=RuntimeError)
def axis_lost(scores, mask=None):
    """Right for one query, not for several: the sum of each row has lost its axis, so it meets the
    columns instead. What does `keepdim` keep?"""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(-1)


@exercise.mistake
def over_everything(scores, mask=None):
    """The weights of all the queries together sum to one: the sum ran over the whole tensor instead
    of each row by itself."""
    exponentials = torch.exp(scores - scores.max())
    if mask is not None:
        exponentials = exponentials * mask
    return exponentials / exponentials.sum()


@exercise.mistake
def gradient_is_nan(scores, mask=None):
    """The weights are right, but a row with every key masked has NaN as its gradient: `where` drops
    the 0 / 0 from the result, not from the gradient. Can you keep it from being computed?"""
    exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
    if mask is not None:
        exponentials = exponentials * mask
    total = exponentials.sum(-1, keepdim=True)
    return torch.where(total == 0, 0.0, exponentials / total)


@exercise.mistake
def no_exponential(scores, mask=None):
    """The scores were divided by their sum without the exponential, so negative scores give
    negative weights."""
    if mask is not None:
        scores = scores * mask
    return scores / scores.sum(-1, keepdim=True)


@exercise.mistake
def one_peak_and_no_nan(scores, mask=None):
    """A row far below the largest score of the whole tensor becomes all zeros: its exponentials are
    0, and the zero sum was replaced. Whose largest score should each row use?"""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    exponentials = torch.exp(scores - scores.max())
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


@exercise.mistake
def peak_of_all(scores, mask=None):
    """The peak was taken over masked scores too: where one of these is far above the others, every
    exponential that counts is 0. Over which scores is the largest to be found?"""
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    if mask is not None:
        exponentials = exponentials * mask
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


@exercise.mistake
def smallest_subtracted(scores, mask=None):
    """The smallest score was subtracted, so what is left is positive and exp of it overflows. Which
    score leaves nothing above 0?"""
    exponentials = torch.exp(scores - scores.amin(-1, keepdim=True))
    if mask is not None:
        exponentials = exponentials * mask
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


@exercise.mistake
def mean_subtracted(scores, mask=None):
    """The mean of each row was subtracted, so a score far above it still overflows in exp. Which
    score leaves nothing above 0?"""
    exponentials = torch.exp(scores - scores.mean(-1, keepdim=True))
    if mask is not None:
        exponentials = exponentials * mask
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


@exercise.mistake(raises=EinopsError)
def queries_in_the_pattern(scores, mask=None):
    """Right for a table of scores, not for one row alone, as the docstring's example has it: the
    pattern asks for an axis of queries. What do three dots in it stand for?"""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    peak = reduce(scores.detach(), "... query key -> ... query 1", "max")
    exponentials = torch.exp(scores - peak.masked_fill(peak == float("-inf"), 0.0))
    total = reduce(exponentials, "... query key -> ... query 1", "sum")
    return exponentials / total.masked_fill(total == 0, 1.0)


def with_epsilon(epsilon):
    """Return the softmax of many codes: a small number keeps the sum of a row from being 0."""

    def epsilon_added(scores, mask=None):
        """A small number was added to the sum of each row, so no row of weights sums to exactly
        one. Only a row with every key masked has the sum 0: what can be done there alone?"""
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        peak = scores.amax(-1, keepdim=True).clamp(min=-1e30)
        exponentials = torch.exp(scores - peak)
        return exponentials / (exponentials.sum(-1, keepdim=True) + epsilon)

    epsilon_added.__name__ = f"epsilon_of_{epsilon:g}"
    return epsilon_added


for epsilon in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
    exercise.mistake(with_epsilon(epsilon))


stock.mask_inverted(exercise)
stock.ignored(exercise)
stock.mask_as_condition(exercise)
stock.unstable(exercise)
stock.masked_with_zero(exercise)
stock.mask_added(exercise)
stock.over_queries(
    exercise,
    "The columns sum to one, not the rows: each query shares its attention out among the keys, "
    "and the keys are the last axis.",
)
stock.nowhere_is_nan(
    exercise,
    "A row with every key masked gives NaN: its largest score is minus infinity, and its sum is "
    "0. Such a row should be all zeros.",
)
stock.nowhere_is_everywhere(
    exercise,
    "A row with every key masked shares its weight out equally: where every score is the same "
    "large negative number, no key is worse than another. Such a row should be all zeros.",
)
stock.masked_after(
    exercise,
    "The masked weights were set to zero after the division, so the rest of the row sums to less "
    "than one. Who should have shared the rest out?",
)
stock.over_axis(
    exercise,
    1,
    "Right for a matrix, but axis 1 is the last one only there: in a batch of matrices the keys "
    "are elsewhere. Which number names the last axis, however many there are?",
)
stock.over_axis(
    exercise,
    0,
    "The weights sum to one along the first axis: the batch or the queries compete. Each query "
    "shares its attention out among its keys: on which axis are they?",
)


@exercise.alternative
def masking_the_exponentials(scores, mask=None):
    shifted = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    shifted = shifted - shifted.amax(-1, keepdim=True).clamp(min=-1e30)
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30)


@exercise.alternative
def row_by_row(scores, mask=None):
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    rows = []
    keys = scores.shape[-1]
    for row, shown in zip(
        scores.reshape(-1, keys), mask.expand_as(scores).reshape(-1, keys), strict=True
    ):
        row = row.masked_fill(~shown, -1e30)
        exponentials = torch.exp(row - row.max()) * shown
        rows.append(exponentials / (exponentials.sum() + ~shown.any()))
    return torch.stack(rows).reshape(scores.shape)
