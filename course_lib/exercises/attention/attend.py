"""Scores, weights and an average in one: how a decoder looks at what an encoder has read."""

import torch

from course_lib.attention import attend, softmax
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION

exercise = Exercise(
    reference=attend,
    lesson="02",
    title="One look at all the states",
    minutes=10,
    difficulty=1,
    hints=(
        "You have built all three parts. In which order do they run, and what does each one hand "
        "to the next?",
        "Two queries and five states of size 4: which shapes have the scores, the weights and the "
        "contexts? Which of the parts takes the mask?",
        "The states are used twice, once to be compared and once to be averaged. Two things are "
        "returned, the contexts first.",
    ),
    joins=("attention/dot_scores", "attention/weighted_sum"),
    clauses={
        "keys and values at once": "averaged_with_scores",
        "without a scale": "scaled",
        "a state has the weight 0": "small_instead_of_none",
    },
    forbidden=FUSED_ATTENTION,
)


@exercise.cases
def cases(draw: Draw):
    yield "one query, two states", (draw.normal(1, 3), draw.normal(2, 3))
    yield "as many queries as states", (draw.normal(3, 2), draw.normal(3, 2))
    yield "four queries, three states", (draw.normal(4, 5), draw.normal(3, 5))
    yield "one state alone", (draw.normal(2, 2), draw.normal(1, 2))
    yield "some states masked", (draw.normal(3, 4), draw.normal(5, 4), draw.mask(3, 5))
    nowhere = torch.tensor([[False, False, False], [True, False, True]])
    yield "a query that may look nowhere", (draw.normal(2, 4), draw.normal(3, 4), nowhere)
    batch = (draw.normal(2, 4, 3), draw.normal(2, 6, 3))
    yield "a batch, without a mask", batch
    yield "a batch, each word with its own padding", (*batch, draw.mask(2, 1, 6))
    yield "two batch dimensions", (draw.normal(3, 2, 4, 5), draw.normal(3, 2, 3, 5))


@exercise.edges
def edges(draw: Draw):
    hidden = torch.tensor([[True], [False], [True]])
    yield "one state, hidden from one query", (draw.normal(3, 2), draw.normal(1, 2).abs(), hidden)
    zeros = torch.tensor([[1.0], [0], [1], [1]])
    yield "a state of zeros, without a mask", (draw.normal(2, 3), zeros * draw.normal(4, 3))


@exercise.requires("a masked state might as well not be there, however large its score")
def masked_state(answer, draw: Draw):
    query, states = draw.normal(1, 4), draw.normal(5, 4)
    shown = torch.tensor([True, True, False, True, False])
    states = states + 200 * torch.where(shown.unsqueeze(-1), -query, query)
    contexts, weights = answer(query, states, shown.expand(1, 5))
    alone, _ = answer(query, states[shown])
    hidden = weights[:, ~shown]
    return torch.allclose(contexts, alone, atol=1e-3) and not hidden.any() and weights.sum() > 0.9


@exercise.requires("equal states get equal weights, and the context is that state")
def equal_states(answer, draw: Draw):
    state = draw.normal(1, 4)
    contexts, weights = answer(draw.normal(3, 4), state.expand(5, 4))
    same = torch.allclose(contexts, state.expand(3, 4), atol=1e-5)
    return same and torch.allclose(weights, torch.full((3, 5), 0.2), atol=1e-5)


def attended(scores, states, mask=None):
    weights = softmax(scores, mask)
    return weights @ states, weights


@exercise.mistake
def scaled(queries, states, mask=None):
    """The scores are divided by sqrt(d). That scale belongs to lesson 03; here the score is the
    plain dot product."""
    return attended(queries @ states.mT / queries.shape[-1] ** 0.5, states, mask)


@exercise.mistake
def averaged_with_scores(queries, states, mask=None):
    """The states are averaged with the scores, before the softmax. Which of the two sums to one?"""
    scores = queries @ states.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, 0)
    return scores @ states, softmax(scores, mask)


@exercise.mistake
def scores_returned(queries, states, mask=None):
    """The second result holds the scores. The weights are what the softmax makes of them."""
    scores = queries @ states.mT
    return attend(queries, states, mask)[0], scores


@exercise.mistake(raises=RuntimeError)
def queries_averaged(queries, states, mask=None):
    """The queries were averaged, with one weight for each state. What does the decoder want to
    know: what it asked, or what the encoder has read?"""
    _, weights = attend(queries, states, mask)
    return weights @ queries, weights


@exercise.mistake
def small_instead_of_none(queries, states, mask=None):
    """Padded states have a small weight instead of none: a masked score of -10 or -50 still counts
    when all the other scores are low. Minus infinity never does."""
    scores = queries @ states.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -10.0)
    return attended(scores, states)


stock.ignored(exercise)
stock.mask_inverted(exercise)
stock.over_queries(
    exercise,
    "The softmax runs over the queries, so the weights of one query do not sum to one. Along "
    "which axis are the states of one query?",
)
stock.masked_after(exercise)
stock.with_result(
    exercise,
    "swapped",
    "These are the right two tensors in the wrong order: the contexts come first.",
    lambda both: both[::-1],
)
stock.with_result(
    exercise,
    "contexts_alone",
    "The weights are missing: return both, the contexts and the weights.",
    lambda both: both[0],
)


@exercise.alternative
def in_one_pattern(queries, states, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", queries, states)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    weights = weights if mask is None else weights.masked_fill(~mask, 0.0)
    return torch.einsum("...qk,...kd->...qd", weights, states), weights


@exercise.alternative
def by_multiplying(queries, states, mask=None):
    scores = (queries.unsqueeze(-2) * states.unsqueeze(-3)).sum(-1)
    weights = softmax(scores, mask)
    return (weights.unsqueeze(-1) * states.unsqueeze(-3)).sum(-2), weights
