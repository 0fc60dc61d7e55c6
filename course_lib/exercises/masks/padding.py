"""Sentences of unequal lengths in one batch: nobody looks at the padding."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.masks import causal_mask, padding_mask
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=padding_mask,
    lesson="05_batches",
    title="Hide the padding",
    minutes=8,
    difficulty=2,
    hints=(
        "A sentence of two tokens fills the first of five places. Which numbers, from 0, have the "
        "places of its tokens? What do these numbers have in common?",
        "Scores have the axes batch, query, key. Is it the query or the key that must be a real "
        "token, if padding is to change nothing? What does the other axis need then?",
        "One row of places meets a column of lengths. Which shapes must the two have, so that "
        "comparing them gives one row for each sentence?",
    ),
    clauses={
        "filled up to n tokens at their ends": "padded_in_front",
        "which all see the same tokens": "hides_the_queries",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two sentences", (torch.tensor([1, 3]), 3)
    n = draw.number(9, 20)
    yield "a rectangle wider than any sentence", (draw.integers(1, n, 4), n)
    yield "as many sentences as tokens", (torch.tensor([2, 3, 1]), 3)
    yield "one sentence, and it is full", (torch.tensor([4]), 4)
    yield "an empty sentence", (torch.tensor([n - 7, 0, n]), n)


@exercise.edges
def edges(draw: Draw):
    many = draw.number(1100, 1500)
    yield "more than a thousand places", (torch.tensor([many - 7, 5, many]), many)
    yield "lengths of 32 bits", (draw.integers(0, 7, 3).int(), 6)


@exercise.requires("each sentence shows as many tokens as it has")
def counts(answer, draw: Draw):
    n = draw.number(5, 50)
    lengths = draw.integers(0, n + 1, 5)
    return answer(lengths, n).sum((-2, -1)).tolist() == lengths.tolist()


@exercise.requires("the padding changes no token of its sentence")
def padding_is_not_seen(answer, draw: Draw):
    n = draw.number(5, 50)
    x, lengths = draw.normal(4, n, 3), draw.integers(1, n + 1, 4)
    padding = torch.arange(n).unsqueeze(-1) >= lengths[:, None, None]
    mask = answer(lengths, n)
    before, after = (
        scaled_dot_product_attention(x, y, y, mask) for y in (x, x.masked_fill(padding, 100.0))
    )
    return before.abs().amax(-1).min() > 0 and torch.allclose(before, after, atol=1e-5)


@exercise.requires("together with the causal mask, it is one mask for each sentence")
def meets_the_causal_mask(answer, draw: Draw):
    n = draw.number(5, 50)
    lengths = draw.integers(1, n + 1, 4)
    both = answer(lengths, n) & causal_mask(n)
    seen = [[min(i + 1, length) for i in range(n)] for length in lengths.tolist()]
    return both.sum(-1).tolist() == seen


@exercise.mistake
def one_too_many(lengths, n):
    """One token of padding is seen in each sentence that has any. Places are counted from 0: which
    number has the last token of a sentence of three?"""
    return torch.arange(n) <= lengths[:, None, None]


@exercise.mistake
def one_too_few(lengths, n):
    """The last token of each sentence is hidden. Places are counted from 0: which number has the
    last token of a sentence of three, and is it smaller than its length?"""
    return torch.arange(1, n + 1) < lengths[:, None, None]


@exercise.mistake
def inverted(lengths, n):
    """True marks the padding here. In this course True means that a token may be looked at."""
    return ~padding_mask(lengths, n)


@exercise.mistake
def no_axis_for_queries(lengths, n):
    """The axis in the middle is missing: with scores of shape (batch, query, key), a mask of shape
    (batch, n) is taken for one row per query. What is the same for all queries?"""
    return padding_mask(lengths, n).squeeze(1)


@exercise.mistake
def hides_the_queries(lengths, n):
    """The places are on the axis of the queries, so padding may not look, and everybody may look at
    padding. What should the mask hide: queries, or keys?"""
    return padding_mask(lengths, n).mT


@exercise.mistake
def hides_queries_and_keys(lengths, n):
    """Here padding is hidden as a key, and as a query too: its rows see nothing. Nobody reads what
    padding gathers, so one row does for all queries: which size has the axis in the middle?"""
    mask = padding_mask(lengths, n)
    return mask & mask.mT


@exercise.mistake
def stretched_over_queries(lengths, n):
    """The right entries, written down once for every query. One row does for all of them: with 1 as
    the size in the middle, torch stretches it, and there may be any number of queries."""
    return padding_mask(lengths, n).expand(-1, n, -1)


@exercise.mistake
def room_ignored(lengths, n):
    """There are as many columns as the longest sentence has tokens, whatever `n` is. The scores
    have n of them: one batch may hold short sentences only."""
    return padding_mask(lengths, int(lengths.max()))


@exercise.mistake
def padded_in_front(lengths, n):
    """The padding was taken to be in front of each sentence. At which end does the docstring put
    it?"""
    return padding_mask(lengths, n).flip(-1)


@exercise.mistake
def only_the_last_word(lengths, n):
    """Only one token of each sentence is seen, the one just at its end. Which places come before
    it, and are they real?"""
    return torch.arange(n) == lengths[:, None, None] - 1


@exercise.mistake
def of_floats(lengths, n):
    """The mask is made of the numbers 1.0 and 0.0, and should be of True and False. What does a
    comparison give by itself?"""
    return padding_mask(lengths, n).float()


@exercise.alternative
def sentence_by_sentence(lengths, n):
    rows = []
    for length in lengths.tolist():
        rows.append([[True] * length + [False] * (n - length)])
    return torch.tensor(rows)


@exercise.alternative
def looked_up_in_a_triangle(lengths, n):
    return torch.ones(n + 1, n, dtype=torch.bool).tril(-1)[lengths].unsqueeze(1)
