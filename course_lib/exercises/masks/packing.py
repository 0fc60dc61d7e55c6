"""Texts in one line that must not see each other: a mask with a fault, to be mended."""

import torch
from einops import rearrange

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.masks import causal_mask, packing_mask

exercise = Exercise(
    reference=packing_mask,
    lesson="05",
    title="Find the bug: two texts in a line",
    minutes=6,
    difficulty=2,
    hints=(
        "Take the line 0, 0, 1. Write down, on paper, the row of the last token: what may it see? "
        "Then compute the two parts of the mask for that row, one after the other.",
        "Two conditions are joined. The first looks at places, the second at documents. What must "
        "be true of two tokens' documents, whatever their numbers are?",
    ),
    clauses={
        "Short texts are packed": GIVEN,
        "gives each token's document": GIVEN,
        "in the same document": "the_others",
        "and j <= i": "the_future_too",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two texts", (torch.tensor([0, 0, 1]),)
    yield "one text", (torch.zeros(draw.number(3, 9)).long(),)
    yield "each token a text of its own", (torch.arange(draw.number(3, 9)),)
    yield "numbers in any order", (torch.tensor([4, 4, 1, 1, 1, 9]),)
    yield "a text that goes on after another", (torch.tensor([2, 7, 2, 2, 7]),)
    yield "one token", (torch.tensor([3]),)
    yield "a batch of lines", (draw.integers(0, 3, 4, 7).sort(-1).values,)
    yield "two batch dimensions", (draw.integers(0, 3, 2, 3, 5).sort(-1).values,)
    yield "as many lines as tokens", (draw.integers(0, 2, 6, 6).sort(-1).values,)


@exercise.edges
def edges(draw: Draw):
    yield "a text with the number -1", (torch.tensor([-1, -1, 0, 0, 1]),)
    large = 2 * draw.number(10**7, 10**9)
    yield "large numbers side by side", (large + torch.tensor([0, 0, 1, 1, 0]),)


@exercise.requires("other numbers for the same texts give the same mask")
def numbers_are_names(answer, draw: Draw):
    documents = draw.integers(0, 4, 30).sort().values
    mask = answer(documents)
    return mask.any() and torch.equal(mask, answer(7 - documents))


@exercise.hand_out
def in_order(documents):
    """The fault was `>=` for `==`: where texts are numbered in order, no earlier text was hidden,
    and each text read those before it."""
    # let each token look at itself and at the tokens before it
    back = causal_mask(documents.shape[-1], device=documents.device)
    # but at none of another document
    same = rearrange(documents, "... n -> ... n 1") >= rearrange(documents, "... n -> ... 1 n")
    return back & same


def both_ways(documents):
    return documents.unsqueeze(-1) == documents.unsqueeze(-2)


@exercise.mistake
def the_future_too(documents):
    """Texts do not see each other now, but each token sees the rest of its own text, the future
    included. Which of the two conditions was right before?"""
    return both_ways(documents)


@exercise.mistake
def the_others(documents):
    """Each token sees the other texts before it, and not its own. What does `same` say of two
    tokens of one text?"""
    return causal_mask(documents.shape[-1]) & ~both_ways(documents)


@exercise.mistake
def either(documents):
    """A token may look where one of the two conditions holds. Both must."""
    return causal_mask(documents.shape[-1]) | both_ways(documents)


@exercise.mistake
def without_itself(documents):
    """No token may look at itself, so the first of each text may look nowhere."""
    return causal_mask(documents.shape[-1]).tril(-1) & both_ways(documents)


@exercise.mistake
def later_texts(documents):
    """The comparison was turned round: now texts with greater numbers are open, and with numbers in
    falling order every earlier text is seen. What must be true of two tokens of one text?"""
    return causal_mask(documents.shape[-1]) & (documents.unsqueeze(-1) <= documents.unsqueeze(-2))


@exercise.mistake
def none_for_padding(documents):
    """A text with the number -1 was taken for padding, and its tokens may look nowhere. Numbers
    are only names here: what is asked of two tokens' documents?"""
    return packing_mask(documents) & (documents >= 0).unsqueeze(-1)


@exercise.alternative
def row_by_row(documents):
    n = documents.shape[-1]
    rows = [(documents == documents[..., i : i + 1]) & (torch.arange(n) <= i) for i in range(n)]
    return torch.stack(rows, dim=-2)
