"""One rotation moves every sinusoidal position on by the same number of places."""

import math

import torch

from course_lib.checking.exercise import REMARKED, Draw, Exercise
from course_lib.positions import shift_matrix, sinusoidal

exercise = Exercise(
    reference=shift_matrix,
    lesson="04",
    title="A shift is a rotation",
    minutes=10,
    difficulty=3,
    hints=(
        "With one wave only, a position is a point of the unit circle. What happens to that point "
        "when you go on by `offset` places, and does it matter where you started?",
        "sin(a + b) is made of sin a and cos a, with two numbers that know b alone. Which two? "
        "And which two make cos(a + b)?",
        "In the row (sin a, cos a) M, the first column of M makes the new sine. Which of your four "
        "numbers belong into that column?",
        "Waves do not mix. What must M hold wherever a row and a column belong to different waves?",
    ),
    clauses={
        "default float type": REMARKED,
    },
    # einops takes a list for a stacked tensor
    equivalent=(
        "torch.stack([torch.stack([cosine, -sine]), torch.stack([sine, cosine])]) -> "
        "[torch.stack([cosine, -sine]), torch.stack([sine, cosine])]",
    ),
    tolerance=1e-4,
)


@exercise.cases
def cases(draw: Draw):
    yield "one wave, one place on", (1, 2)
    yield "two waves, a few places on", (draw.number(2, 9), 4)
    yield "no shift at all", (0, 6)
    yield "some places back", (-draw.number(1, 9), 2 * draw.number(3, 9))
    yield "far away", (draw.number(100, 400), 2 * draw.number(3, 9))


@exercise.edges
def edges(draw: Draw):
    yield "thousands of places on", (draw.number(5100, 6000), 4)


@exercise.requires("p(i) M is p(i + offset) for every position i", points=2)
def shifts(answer, draw: Draw):
    offset, d_model = draw.number(1, 100), 2 * draw.number(2, 12)
    table = sinusoidal(9 + offset, d_model)
    return torch.allclose(table[:9] @ answer(offset, d_model), table[offset:], atol=1e-4)


@exercise.requires("two shifts, one after the other, are one shift by their sum", points=2)
def shifts_add_up(answer, draw: Draw):
    one, other, d_model = draw.number(1, 50), draw.number(51, 100), 2 * draw.number(2, 12)
    first, second, both = (answer(offset, d_model) for offset in (one, other, one + other))
    return not torch.allclose(first, second, atol=1e-2) and torch.allclose(
        first @ second, both, atol=1e-4
    )


@exercise.requires("a shift back undoes a shift on")
def undone(answer, draw: Draw):
    offset, d_model = draw.number(1, 100), 2 * draw.number(2, 12)
    on, back = answer(offset, d_model), answer(-offset, d_model)
    return not torch.allclose(on, back, atol=1e-2) and torch.allclose(
        on @ back, torch.eye(d_model), atol=1e-4
    )


def angles(offset, d_model, first=0, speed=2.0):
    c = torch.arange(d_model // 2) + first
    return offset * 10000.0 ** (-speed * c / d_model)


def blocks(*entries):
    """Make one block a wave from its four entries, row by row."""
    return torch.stack(entries, dim=-1).unflatten(-1, (2, 2))


def turning(b):
    return torch.block_diag(*blocks(b.cos(), -b.sin(), b.sin(), b.cos()))


@exercise.mistake
def turned_backwards(offset, d_model):
    """M turns the other way: it moves positions back. Positions are rows here, p M and not M p, so
    the new sine is made by the first column of a block, not by its first row."""
    return shift_matrix(-offset, d_model)


@exercise.mistake
def one_angle_for_all(offset, d_model):
    """Every wave was turned by the same angle, `offset`. A slow wave has moved on less: by how
    much, for wave c?"""
    return turning(angles(offset, d_model, speed=0.0))


@exercise.mistake
def counted_from_one(offset, d_model):
    """The first wave turns too slowly, and so do all others: the exponents begin with 2 / d_model,
    as most of the lectures print them. From which number does c count?"""
    return turning(angles(offset, d_model, first=1))


@exercise.mistake
def exponent_halved(offset, d_model):
    """The angles fall half as fast as they should: the exponent is c / d_model. What stands before
    c in the formula?"""
    return turning(angles(offset, d_model, speed=1.0))


@exercise.mistake
def exponent_doubled(offset, d_model):
    """The angles fall twice as fast as they should: if c is counted as 0, 2, 4, it has been doubled
    already. How often should the 2 of the formula be there?"""
    return turning(angles(offset, d_model, speed=4.0))


@exercise.mistake
def in_halves(offset, d_model):
    """Right for sines in the left half and cosines in the right half. Here they take turns: which
    two columns belong to the first wave?"""
    b = angles(offset, d_model)
    cosine, sine = torch.diag(b.cos()), torch.diag(b.sin())
    return torch.cat([torch.cat([cosine, -sine], 1), torch.cat([sine, cosine], 1)])


@exercise.mistake
def no_minus(offset, d_model):
    """No entry is negative where a sine should be: sin(a + b) and cos(a + b) are both sums, but one
    of them has a minus. Which one?"""
    b = angles(offset, d_model)
    return torch.block_diag(*blocks(b.cos(), b.sin(), b.sin(), b.cos()))


@exercise.mistake
def mirrored(offset, d_model):
    """The minus stands before a cosine: each block is a mirror, and two mirrors undo each other,
    whereas two shifts add up. What should no shift at all leave on the diagonal?"""
    b = angles(offset, d_model)
    return torch.block_diag(*blocks(b.cos(), b.sin(), b.sin(), -b.cos()))


@exercise.mistake
def sine_on_the_diagonal(offset, d_model):
    """Sine and cosine have changed places in the blocks. For offset 0 every position stays where it
    is: which matrix does that, and what are sin 0 and cos 0?"""
    b = angles(offset, d_model)
    return torch.block_diag(*blocks(b.sin(), -b.cos(), b.cos(), b.sin()))


@exercise.mistake
def blocks_in_a_stack(offset, d_model):
    """The blocks are right, and still lie in a stack, one above another. A matrix that meets a row
    of d_model numbers has d_model rows: where does block c belong in it?"""
    b = angles(offset, d_model)
    return blocks(b.cos(), -b.sin(), b.sin(), b.cos())


@exercise.mistake
def columns_moved(offset, d_model):
    """This moves the columns along, not the positions: position i + offset is another row of the
    table, and its columns are the same waves, turned."""
    return torch.eye(d_model).roll(offset, dims=1)


@exercise.alternative
def block_by_block(offset, d_model):
    found = torch.zeros(d_model, d_model)
    for c in range(0, d_model, 2):
        b = offset / 10000 ** (c / d_model)
        found[c, c] = found[c + 1, c + 1] = math.cos(b)
        found[c, c + 1], found[c + 1, c] = -math.sin(b), math.sin(b)
    return found


@exercise.alternative
def one_place_repeated(offset, d_model):
    speeds = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    moved = torch.matrix_exp(offset * torch.kron(torch.diag(speeds), quarter))
    return moved.to(torch.get_default_dtype())
