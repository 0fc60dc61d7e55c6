"""The rows of a checkpoint's query matrix in our order, with a fault to be mended."""

import torch
from einops import rearrange

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.real_models import pairs_to_halves

exercise = Exercise(
    reference=pairs_to_halves,
    lesson="09",
    title="Find the bug: a checkpoint in another order",
    minutes=6,
    difficulty=2,
    hints=(
        "Heads of two or four rows come out right, heads of six do not. Number the six rows of one "
        "head from 0 to 5 and write down their order after the line.",
        "The left side of the pattern says how the rows come, the right side how they go. In the "
        "file the two rows of a pair are neighbours: which letter has to change fastest, on the "
        "left, and which on the right?",
    ),
    clauses={
        "A row of `weight` makes one column": GIVEN,
        "turn a head's columns 2c and 2c + 1": GIVEN,
        "turns c and c + d_k / 2": GIVEN,
        "in each head": "across_heads",
        "row 2c becomes row c": "second_first",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "one head of two rows", (draw.normal(2, 3), 1)
    yield "one head of four rows", (draw.normal(4, 3), 1)
    yield "two heads of four rows", (draw.normal(8, 5), 2)
    yield "one head of six rows", (torch.arange(6.0).unsqueeze(-1), 1)
    yield "two heads of six rows", (draw.normal(12, 5), 2)
    yield "three heads of eight rows", (draw.normal(24, 2), 3)
    yield "as many rows as a token has numbers", (draw.normal(10, 10), 1)


@exercise.requires("the matrix of one head does not change another head's")
def heads_apart(answer, draw: Draw):
    weight = draw.normal(16, 3)
    other = torch.cat([weight[:8], draw.normal(8, 3)])
    plain = answer(weight, 2)
    return plain.any() and torch.equal(plain[:8], answer(other, 2)[:8])


@exercise.requires("no row is lost, and no row changes")
def all_rows(answer, draw: Draw):
    rows = draw.normal(12).sort().values.unsqueeze(-1)
    return torch.equal(answer(rows, 2).sort(0).values, rows)


@exercise.hand_out
def the_way_back(weight, heads):
    """The fault was the direction: the pattern took the rows as halves and made neighbouring pairs
    of them. Heads of two and four rows hide it, since there the way back is the same as the way."""
    # in each head, put the first of all pairs into the left half, the second into the right
    return rearrange(
        weight, "(heads two pair) d_model -> (heads pair two) d_model", heads=heads, two=2
    )


@exercise.mistake
def across_heads(weight, heads):
    """The rows of all heads were reordered as if they were one head, so heads are mixed. Which axis
    has to come first on both sides?"""
    return rearrange(weight, "(pair two) d_model -> (two pair) d_model", two=2)


@exercise.mistake
def second_first(weight, heads):
    """The two halves of each head changed places: the second row of each pair is in the left
    half."""
    paired = weight.unflatten(0, (heads, -1, 2)).flip(2)
    return paired.transpose(1, 2).reshape(weight.shape)


@exercise.mistake
def as_it_came(weight, heads):
    """The rows are in the order in which they came: neighbours are still neighbours."""
    return weight.clone()


@exercise.alternative
def by_steps_of_two(weight, heads):
    d_k = len(weight) // heads
    rows = []
    for head in range(heads):
        own = weight[head * d_k : (head + 1) * d_k]
        rows += [own[0::2], own[1::2]]
    return torch.cat(rows)


@exercise.alternative
def a_transposed_axis(weight, heads):
    return weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)
