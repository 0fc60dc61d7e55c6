"""Version 1 of self-attention: every word averages its sentence, by likeness alone."""

import torch
from torch.nn import functional as F

from course_lib.attention import softmax
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.self_attention import parameter_free

exercise = Exercise(
    reference=parameter_free,
    lesson="03",
    title="Tokens that average their sentence",
    minutes=8,
    difficulty=2,
    hints=(
        "Lesson 02 gave you three functions: one compares, one makes weights, one averages. What "
        "are queries, keys and values when there is nothing but x?",
        "A causal mask is a square of True and False. In row 3, which columns are True, and is "
        "column 3 one of them?",
        "The mask works on scores, before they become weights. Along which axis of x do you count "
        "the words, when a batch may stand before it?",
    ),
    clauses={
        "averages tokens 1..i only": "looks_ahead",
    },
    forbidden=FUSED_ATTENTION,
    # each word sees itself, with a score of at least 0: beside that, exp(-10000) is nothing
    equivalent=("masked with a large number",),
)


@exercise.cases
def cases(draw: Draw):
    yield "two words", (draw.normal(2, 3),)
    yield "two words, causal", (draw.normal(2, 3), True)
    yield "five words, causal", (draw.normal(5, 4), True)
    yield "a word of zeros, causal", (torch.tensor([[1.0, 2], [0, 0], [2, 1]]), True)
    yield "a batch", (draw.normal(2, 4, 3),)
    yield "a batch, causal", (draw.normal(2, 5, 3), True)
    yield "two batch dimensions, causal", (draw.normal(3, 2, 4, 5), True)
    yield "one word", (draw.normal(1, 4),)
    yield "as many words as each has numbers", (draw.normal(4, 4), True)


@exercise.edges
def edges(draw: Draw):
    yield "a hundred words, causal", (draw.normal(100, 3), True)


@exercise.requires("permuting the words permutes the results")
def equivariant(answer, draw: Draw):
    x, order = draw.normal(4, 3), torch.tensor([2, 0, 3, 1])
    plain = answer(x)
    return plain.abs().max() > 0 and torch.allclose(answer(x[order]), plain[order], atol=1e-5)


@exercise.requires("when causal, a new last word changes the last result alone")
def no_future(answer, draw: Draw):
    x = draw.normal(4, 3)
    before, after = answer(x, True), answer(torch.cat([x[:3], draw.normal(1, 3)]), True)
    changed = (before - after).abs().amax(-1) > 1e-6
    return changed.tolist() == [False, False, False, True]


@exercise.requires("long words of equal length keep to themselves")
def long_words(answer, draw: Draw):
    x = 50 * F.normalize(draw.normal(4, 16), dim=-1)
    return torch.allclose(answer(x), x, atol=1e-3)


def attend(x, shown=None, scale=1.0):
    return softmax(x @ x.mT / scale, shown) @ x


def square(x):
    return torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device)


@exercise.mistake
def scaled(x, causal=False):
    """The scores were divided by sqrt(d). Version 1 has no scale: what is the score of the word [1,
    1] with itself, and what is it in yours?"""
    return attend(x, square(x).tril() if causal else None, x.shape[-1] ** 0.5)


@exercise.mistake
def causal_always(x, causal=False):
    """Words look at the past alone even where nobody asked for it: without `causal`, the first word
    sees the last one too."""
    return attend(x, square(x).tril())


@exercise.mistake
def looks_ahead(x, causal=False):
    """Each word sees itself and what comes after it. Causal is the other half: in row 1, which
    columns may be looked at?"""
    return attend(x, square(x).triu() if causal else None)


@exercise.mistake
def hides_itself(x, causal=False):
    """When causal, each word is hidden from itself, so the first one sees nothing and gets zeros.
    Word i averages words 1 to i: does that include i?"""
    return attend(x, square(x).tril(-1) if causal else None)


@exercise.mistake
def hides_itself_nan(x, causal=False):
    """The first word is NaN: when causal, each word is hidden from itself, and the first one is
    left with no word at all. Which diagonal belongs to the past?"""
    scores = x @ x.mT
    if causal:
        scores = scores.masked_fill(~square(x).tril(-1), -torch.inf)
    return torch.softmax(scores, -1) @ x


@exercise.mistake
def one_too_many(x, causal=False):
    """Each word sees one word too many when causal, the next one. In row 1, how many columns may be
    looked at?"""
    return attend(x, square(x).tril(1) if causal else None)


@exercise.mistake
def zero_times_infinity(x, causal=False):
    """When causal, everything is NaN: 0 times minus infinity is neither 0 nor minus infinity. How
    can minus infinity be put in some places without a product?"""
    scores = x @ x.mT
    if causal:
        scores = scores + torch.ones_like(scores).triu(1) * -torch.inf
    return torch.softmax(scores, -1) @ x


@exercise.mistake
def weights_only(x, causal=False):
    """These are the weights, one for each pair of words. What do they average, and what shape does
    that have?"""
    return softmax(x @ x.mT, square(x).tril() if causal else None)


@exercise.mistake(raises=RuntimeError)
def counts_the_batch(x, causal=False):
    """Right for one sentence, but the causal mask does not fit a batch: its size was read off the
    first axis, which is the batch there. Where do the words always stand?"""
    shown = torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).tril()
    return attend(x, shown if causal else None)


@exercise.mistake
def columns_compared(x, causal=False):
    """Columns were compared with columns, X^T X, and mixed: no token has met another one. Which
    product of x with itself has one score for each pair of tokens?"""
    return attend(x.mT, square(x.mT).tril() if causal else None).mT


stock.ignored(
    exercise,
    "causal",
    "`causal` changes nothing, so words see what comes after them.",
)
stock.over_queries(
    exercise,
    "The softmax ran over the queries: each word shares itself out, and the weights with which "
    "one word averages do not sum to one.",
)
stock.no_softmax(
    exercise,
    "The scores averaged the words themselves: they never became weights, so a row of them may "
    "sum to anything.",
)
stock.masked_with_zero(
    exercise,
    "Later words were given the score 0 when causal, and exp(0) is 1: they still weigh something. "
    "Which score has the exponential 0?",
)
stock.masked_after(
    exercise,
    "When causal, the weights of a row sum to less than one: they were cut off after the softmax "
    "had shared them out. What should it have seen instead?",
)


@exercise.mistake
def never_itself(x, causal=False):
    """No word looked at itself: the diagonal was hidden. A word is one of those that it may look
    at, and the only one if it is alone."""
    n = x.shape[-2]
    mask = ~torch.eye(n, dtype=torch.bool, device=x.device)
    return softmax(x @ x.mT, mask.tril() if causal else mask) @ x


@exercise.alternative
def one_word_after_another(x, causal=False):
    rows = []
    for i, word in enumerate(x.unbind(-2)):
        seen = x[..., : i + 1, :] if causal else x
        weights = torch.softmax((seen @ word.unsqueeze(-1)).squeeze(-1), dim=-1)
        rows.append((weights.unsqueeze(-1) * seen).sum(-2))
    return torch.stack(rows, dim=-2)


@exercise.alternative
def minus_infinity_above(x, causal=False):
    scores = torch.einsum("...id,...jd->...ij", x, x)
    if causal:
        scores = scores + torch.full_like(scores, -torch.inf).triu(1)
    return torch.einsum("...ij,...jd->...id", scores.softmax(-1), x)
