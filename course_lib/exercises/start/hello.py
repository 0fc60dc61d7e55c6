"""The first exercise: twice the input, and the input left alone."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.start import double

exercise = Exercise(
    reference=double,
    lesson="00",
    title="Twice as much",
    minutes=2,
    difficulty=1,
    hints=(
        "What does Python write for multiplication? A tensor follows the same arithmetic.",
        "Which operators make a new tensor, and which change the one that they are given?",
    ),
    clauses={
        "A new tensor comes back": "in_place",
        "the input stays as it was": "inputs are not modified",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "one number", (draw.normal(1),)
    yield "a row", (draw.normal(3),)
    yield "a batch of rows", (draw.normal(2, 3, 4),)
    yield "a matrix", (draw.normal(4, 5),)
    yield "a number without an axis", (draw.normal(),)


@exercise.requires("doubling a sum doubles each part")
def additive(answer, draw: Draw):
    x, y = draw.normal(4), draw.normal(4)
    both = answer(x + y)
    return both.allclose(answer(x) + answer(y), atol=1e-5) and both.abs().max() > 0


@exercise.mistake
def squared(x):
    """The result is the square of the input. Squaring and doubling agree at 2, and nearly nowhere
    else: which sign stands for multiplication, and which for a power?"""
    return x**2


@exercise.mistake
def in_place(x):
    """Right numbers, but the input was changed as well: `*=`, `mul_` and `add_` write into the
    tensor that the caller still holds. Make a new one."""
    return x.mul_(2)


@exercise.mistake
def unchanged(x):
    """The input came back as it was: nothing has been multiplied yet."""
    return x


@exercise.mistake
def plus_two(x):
    """Two was added to each element instead of multiplying by it: doubling 1 should give 2, not
    3."""
    return x + 2


@exercise.mistake
def halved(x):
    """The input was halved: which operator multiplies?"""
    return x / 2


@exercise.mistake
def power_of_two(x):
    """Two was raised to the power of the input: `2 ** x` grows ever faster. Which operator
    multiplies?"""
    return 2**x


@exercise.mistake
def plus_one(x):
    """One was added to each element, where each should be multiplied by two."""
    return x + 1


@exercise.mistake
def numpy_array(x):
    """A result of numpy's, which knows nothing of gradients. `2 * x` needs no numpy: torch
    multiplies tensors itself."""
    return 2 * x.detach().numpy()


@exercise.mistake(raises=IndexError)
def times_the_size(x):
    """Each element was multiplied by the size of the first axis. Twice as much is the same factor
    for a tensor of any size: which?"""
    return x * x.shape[0]


@exercise.mistake(raises=(RuntimeError, TypeError))
def row_by_row(x):
    """A loop over the rows needs rows, and a single number has no axis. Which operator doubles a
    tensor of any shape at once?"""
    return torch.stack([2 * row for row in x])


@exercise.alternative
def added(x):
    return x + x
