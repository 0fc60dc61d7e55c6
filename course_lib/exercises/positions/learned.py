"""One vector for each position, learned like any other weight."""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import Draw, Exercise
from course_lib.positions import LearnedPositions

exercise = Exercise(
    reference=LearnedPositions,
    method="forward",
    lesson="04_tables",
    title="Positions that are learned",
    minutes=6,
    difficulty=1,
    hints=(
        "The table has a row for each position that can ever be. Which of its rows does a sentence "
        "of three words need?",
        "In a batch, sentences come first. Counted from the end, which axis are the words always "
        "on, and how do you ask for its size?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "two words", (draw.normal(2, 3),), (4, 3)
    yield "as many words as positions", (draw.normal(5, 2),), (5, 2)
    yield "one word", (draw.normal(1, 2),), (3, 2)
    yield "a batch of sentences", (draw.normal(3, 4, 2),), (6, 2)
    yield "more sentences than positions", (draw.normal(6, 3, 2),), (4, 2)
    yield "two batch dimensions", (draw.normal(2, 3, 4, 5),), (7, 5)
    yield "as many words as each has numbers", (draw.normal(3, 3),), (5, 3)


@exercise.requires("a position adds the same vector to whatever word stands there")
def whatever_word(answer, draw: Draw):
    one, other = draw.normal(4, 3), draw.normal(4, 3)
    added = answer(one, build=(6, 3)) - one
    again = answer(other, build=(6, 3)) - other
    return added.std(0).min() > 0 and torch.allclose(again, added, atol=1e-5)


@exercise.requires("the first words of a longer sentence are placed as if they were alone")
def first_words(answer, draw: Draw):
    x = draw.normal(5, 3)
    long, short = answer(x, build=(6, 3)), answer(x[:2], build=(6, 3))
    return not torch.allclose(short, x[:2], atol=1e-4) and torch.allclose(long[:2], short)


@exercise.mistake
def from_the_end(self, x):
    """The last rows of the table were added, not the first. Which position does the first word of a
    sentence have, whether the sentence is short or long?"""
    return x + self.table[len(self.table) - x.shape[-2] :]


@exercise.mistake(raises=RuntimeError)
def whole_table(self, x):
    """The whole table was added: it fits a sentence that fills it, and one word is copied to every
    position. How many of its rows does a sentence need?"""
    return x + self.table


@exercise.mistake(raises=RuntimeError)
def sentences_counted(self, x):
    """Right for one sentence, not for a batch: `len(x)` counts sentences there. Which axis, from
    the end, are the words on?"""
    return x + self.table[: len(x)]


@exercise.mistake(raises=RuntimeError)
def second_axis_counted(self, x):
    """`x.shape[1]` was taken for the number of words. That is right for one batch of sentences; for
    a sentence alone it is the width of a word. Which axis, from the end, are the words on?"""
    return x + self.table[: x.shape[1]]


@exercise.mistake
def multiplied(self, x):
    """The words were multiplied by their positions' vectors. The formula has another sign between
    x_i and p_i."""
    return x * self.table[: x.shape[-2]]


@exercise.mistake
def positions_alone(self, x):
    """These are the positions alone, without the words. What are they to be added to?"""
    return self.table[: x.shape[-2]].expand_as(x)


@exercise.mistake
def side_by_side(self, x):
    """Word and position stand side by side, so each word has become twice as wide. The formula
    makes one vector of the two."""
    return torch.cat([x, self.table[: x.shape[-2]].expand_as(x)], dim=-1)


@exercise.alternative
class LookedUp(LearnedPositions):
    def forward(self, x):
        n = x.size(-2)
        return F.embedding(torch.arange(n, device=x.device), self.table) + x


@exercise.alternative
class OneHot(LearnedPositions):
    def forward(self, x):
        n, rows = x.shape[-2], len(self.table)
        chosen = torch.eye(rows, dtype=x.dtype, device=x.device)[:n]
        return torch.add(x, chosen @ self.table)
