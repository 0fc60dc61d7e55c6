"""A table of waves, from fast to slow, that tells every position from every other."""

import math

import torch

from course_lib.checking.exercise import REMARKED, Draw, Exercise
from course_lib.positions import sinusoidal

exercise = Exercise(
    reference=sinusoidal,
    lesson="04",
    title="Positions from waves",
    minutes=10,
    difficulty=2,
    hints=(
        "A table of 5 positions and 6 columns has how many different waves? Which two columns "
        "share one?",
        "All angles are products of a position and a speed. What shape must the positions have, "
        "so that n of them meet d_model / 2 speeds and give a whole table?",
        "With n rows of sines and n rows of cosines in hand, sine and cosine of one wave are to "
        "be side by side. Which axis do you stack them on, so that flattening brings "
        "neighbours together?",
    ),
    clauses={
        "The wavelengths grow": "base_of_a_thousand",
        "default float type": REMARKED,
    },
    # a negative axis that is also the last one; einops takes a list for a stacked tensor
    equivalent=(
        "-1 -> 1",
        "torch.stack([torch.sin(angles), torch.cos(angles)]) -> "
        "[torch.sin(angles), torch.cos(angles)]",
    ),
    tolerance=1e-4,
)


@exercise.cases
def cases(draw: Draw):
    yield "a few positions, one wave", (draw.number(2, 5), 2)
    yield "five positions, two waves", (5, 4)
    yield "more waves than positions", (3, 2 * draw.number(4, 9))
    yield "one position", (1, 2 * draw.number(2, 9))
    yield "as many columns as positions", (6, 6)
    yield "a long text", (draw.number(200, 500), 2 * draw.number(3, 9))


@exercise.edges
def edges(draw: Draw):
    # of one wave, whose speed is exactly 1
    yield "thousands of positions", (draw.number(5100, 6000), 2)


@exercise.requires("a sine and the cosine beside it are a point of the unit circle")
def on_the_circle(answer, draw: Draw):
    n, waves = draw.number(5, 100), draw.number(2, 20)
    table = answer(n, 2 * waves)
    circle = table[:, 0::2] ** 2 + table[:, 1::2] ** 2
    return torch.allclose(circle, torch.ones(n, waves), atol=1e-4)


@exercise.requires("how much two positions are alike depends on their distance alone", points=2)
def distance_alone(answer, draw: Draw):
    table = answer(draw.number(5, 100), 2 * draw.number(2, 20))
    alike = table @ table.mT
    same = torch.allclose(alike[1:, 1:], alike[:-1, :-1], atol=1e-3)
    return same and alike[0, 0] > alike[0, 1] + 0.1


@exercise.requires("a longer table begins with the shorter one")
def begins_alike(answer, draw: Draw):
    n, d_model = draw.number(5, 100), 2 * draw.number(2, 20)
    short, long = answer(n, d_model), answer(n + draw.number(1, 9), d_model)
    return len(long) > len(short) and torch.allclose(long[:n], short, atol=1e-4)


def table(places, speeds):
    """Return the right layout for any positions and speeds."""
    angles = places.unsqueeze(-1) * speeds
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def speeds(d_model, factor=1.0, base=10000.0):
    """Return base^(-2c / d_model), the exponent times `factor`."""
    return base ** (-factor * torch.arange(0, d_model, 2) / d_model)


@exercise.mistake
def counted_from_one(n, d_model):
    """The first exponent is 2 / d_model, as most of the lectures print it, so the fastest wave is
    missing. From which number does the docstring count c?"""
    return table(torch.arange(n), 10000.0 ** (-torch.arange(2, d_model + 1, 2) / d_model))


@exercise.mistake
def halves(n, d_model):
    """The sines fill the left half and the cosines the right half. The formula names the columns 2c
    and 2c + 1: which column holds the cosine of the first wave?"""
    angles = torch.arange(n).unsqueeze(-1) * speeds(d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


@exercise.mistake
def read_in_the_wrong_order(n, d_model):
    """The right numbers in the wrong places: `reshape` and `view` read a tensor in its order and
    move no axis. Which axis must be the last, so that sine and cosine of one wave are read
    together?"""
    angles = torch.arange(n).unsqueeze(-1) * speeds(d_model)
    return torch.stack([angles.sin(), angles.cos()]).reshape(n, d_model)


@exercise.mistake
def a_speed_for_every_column(n, d_model):
    """Every column has a speed of its own. A sine and the cosine on its right are to be the same
    wave: how many speeds are there in d_model columns?"""
    columns = torch.arange(d_model)
    angles = torch.arange(n).unsqueeze(-1) * 10000.0 ** (-columns / d_model)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


@exercise.mistake
def cosine_first(n, d_model):
    """Even columns hold cosines and odd ones sines. At position 0 every angle is 0: should the row
    begin with 0 or with 1?"""
    found = table(torch.arange(n), speeds(d_model))
    return found.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)


@exercise.mistake
def base_of_a_thousand(n, d_model):
    """The slowest waves are too fast: behaves as if the base were 1000. How many zeros has the
    number in the formula?"""
    return table(torch.arange(n), speeds(d_model, base=1000.0))


@exercise.mistake
def positions_from_one(n, d_model):
    """The first row is that of position 1. Which row has nothing but zeros and ones, and is it
    here?"""
    return table(torch.arange(1, n + 1), speeds(d_model))


@exercise.mistake
def exponent_halved(n, d_model):
    """The exponents are c / d_model, half of what they should be: the waves slow down to 100 and
    not nearly to 10000. Which factor is before c in the formula?"""
    return table(torch.arange(n), speeds(d_model, factor=0.5))


@exercise.mistake
def exponent_doubled(n, d_model):
    """The exponents are 4c / d_model. If c is counted in steps of two, as 0, 2, 4, it has been
    doubled already: how often should the 2 of the formula be there?"""
    return table(torch.arange(n), speeds(d_model, factor=2.0))


@exercise.mistake
def last_wave_of_the_base(n, d_model):
    """The exponents are c / (d_model / 2 - 1), as in the authors' own library: the last wave is
    exactly 10000 times as slow as the first. In the paper's formula it is not quite: by what is 2c
    divided?"""
    half = d_model // 2
    return table(torch.arange(n), 10000.0 ** (-torch.arange(half) / max(half - 1, 1)))


@exercise.mistake
def multiplied_by_the_power(n, d_model):
    """The waves become faster from pair to pair, by thousands. Does the formula divide the position
    by the power of 10000, or multiply it?"""
    return table(torch.arange(n), speeds(d_model, factor=-1.0))


@exercise.mistake
def positions_in_columns(n, d_model):
    """The table is transposed: each column is a position. The tokens it will be added to are
    rows."""
    return table(torch.arange(n), speeds(d_model)).mT


@exercise.mistake
def degrees(n, d_model):
    """The waves are 57 times too slow: the angles were taken to be degrees. In which unit do sine
    and cosine expect them, and in which is i / 10000^(...)?"""
    return table(torch.arange(n) * torch.pi / 180, speeds(d_model))


@exercise.alternative
def entry_by_entry(n, d_model):
    found = torch.empty(n, d_model)
    for i in range(n):
        for c in range(d_model // 2):
            angle = i / 10000 ** (2 * c / d_model)
            found[i, 2 * c], found[i, 2 * c + 1] = math.sin(angle), math.cos(angle)
    return found


@exercise.alternative
def columns_filled_in_turn(n, d_model):
    found = torch.zeros(n, d_model)
    position = torch.arange(n).unsqueeze(1)
    slower = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    found[:, 0::2] = torch.sin(position * slower)
    found[:, 1::2] = torch.cos(position * slower)
    return found
