"""Queries and keys are turned, so that their scores know the distance between them."""

import torch

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.positions import rotary, sinusoidal

exercise = Exercise(
    reference=rotary,
    lesson="04",
    title="Turn by the position",
    minutes=12,
    difficulty=3,
    hints=(
        "With d = 2 each word is a point of the plane. Turn the point (1, 0) by the angle a: where "
        "does it go, and where does (0, 1) go?",
        "With d = 6 there are three pairs. Which columns does each of them have, and what is "
        "left of x if all first partners are taken out?",
        "Each position meets each speed. What shape has that table of angles, and which axes of "
        "x do its rows and columns belong to?",
    ),
    clauses={
        "Norms do not change": "turning changes no length",
        "dot products depend on i - j alone": "scores depend on the distance alone",
        "computed in float32 at least": "bfloat16, float16 and float32 stay",
    },
    # a negative axis that is also the last one; whole numbers that turn to floats at the speeds
    equivalent=(
        "-1 -> 1",
        "positions.to(exact) -> positions",
    ),
    tolerance=1e-4,
)


@exercise.cases
def cases(draw: Draw):
    yield "one pair", (draw.normal(3, 2), torch.arange(3))
    yield "two pairs", (draw.normal(3, 4), torch.arange(3))
    yield "a text read further", (draw.normal(4, 6), torch.arange(5, 9))
    yield "positions in any order", (draw.normal(5, 8), draw.integers(0, 50, 5))
    yield "another base", (draw.normal(3, 6), torch.arange(1, 4), 100.0)
    yield "far away", (draw.normal(2, 4), torch.tensor([1000, 7]))
    yield "one word", (draw.normal(1, 10), torch.tensor([3]))
    yield "a batch of sentences", (draw.normal(3, 5, 4), torch.arange(5))
    yield "two batch dimensions", (draw.normal(2, 3, 5, 6), torch.arange(5))
    yield "positions between two tokens", (draw.normal(3, 4), torch.tensor([0.5, 1.25, 2.0]))
    yield "as many words as each has numbers", (draw.normal(4, 4), torch.arange(4))


@exercise.edges
def edges(draw: Draw):
    yield "positions counted back from the newest", (draw.normal(4, 6), torch.arange(-3, 1))


@exercise.requires("turning changes no length, and leaves position 0 as it is")
def lengths_stay(answer, draw: Draw):
    x = draw.normal(5, 6)
    turned = answer(x, torch.arange(5))
    moved = (turned - x).abs().amax(-1) > 1e-2
    return moved.tolist() == [False, True, True, True, True] and torch.allclose(
        turned.norm(dim=-1), x.norm(dim=-1), atol=1e-4
    )


@exercise.requires("scores depend on the distance alone")
def distance_alone(answer, draw: Draw):
    q, k, places = draw.normal(4, 6), draw.normal(4, 6), torch.arange(4)
    near = answer(q, places) @ answer(k, places).mT
    far = answer(q, places + 20) @ answer(k, places + 20).mT
    apart = answer(q, places + 20) @ answer(k, places).mT
    return torch.allclose(far, near, atol=1e-3) and not torch.allclose(apart, near, atol=1e-2)


@exercise.requires("bfloat16, float16 and float32 stay what they are, with exact angles")
def types_stay(answer, draw: Draw):
    # bfloat16 cannot tell the angle of 4001 from that of 4000, nor can float16
    x, places = draw.normal(4, 6), torch.arange(4000, 4004)
    exact = answer(x, places)
    for dtype in (torch.bfloat16, torch.float16):
        turned = answer(x.to(dtype), places)
        if turned.dtype != dtype or (turned.float() - exact).abs().max() > 0.1:
            return False
    stays = answer(x, places.double()).dtype == torch.float32
    return stays and not torch.allclose(exact, x, atol=0.5)


@exercise.requires("turning by one position, then by another, is turning by their sum")
def turns_add_up(answer, draw: Draw):
    x, places = draw.normal(3, 4), torch.tensor([2, 5, 1])
    twice = answer(answer(x, places), places + 3)
    return not torch.allclose(twice, x, atol=1e-2) and torch.allclose(
        twice, answer(x, 2 * places + 3), atol=1e-4
    )


def angles(x, positions, base, speed=2.0, first=0, dtype=None):
    exact = dtype or x.dtype
    c = torch.arange(x.shape[-1] // 2, dtype=exact, device=x.device) + first
    return positions.to(exact).unsqueeze(-1) * base ** (-speed * c / x.shape[-1])


def turned(x, angles):
    sine, cosine = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)


def halves_of_neighbours(x):
    """Bring columns 2c to the left half and columns 2c + 1 to the right one."""
    return torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1)


def neighbours_of_halves(x):
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


@exercise.mistake
def neighbours_paired(x, positions, base=10000.0):
    """Neighbouring columns were turned as pairs, 2c with 2c + 1, as in the paper. Here, as in most
    models whose weights you can load, column c has its partner half a width away."""
    b = angles(x, positions, base)
    return neighbours_of_halves(turned(halves_of_neighbours(x), b))


@exercise.mistake
def whole_positions(x, positions, base=10000.0):
    """The positions became whole numbers. Interpolation puts tokens between two places: how far is
    0.5 turned?"""
    return turned(x, angles(x, positions.long(), base))


@exercise.mistake
def laid_side_by_side(x, positions, base=10000.0):
    """The pairs were taken from the two halves and laid down side by side. Which column of the
    result does the formula give to the second partner?"""
    return neighbours_of_halves(turned(x, angles(x, positions, base)))


@exercise.mistake
def turned_the_other_way(x, positions, base=10000.0):
    """All pairs turn the other way, by minus the angle. Where does the point (1, 0) go by a quarter
    turn: is its new second entry 1 or -1?"""
    return turned(x, -angles(x, positions, base))


@exercise.mistake(raises=IndexError)
def added(x, positions, base=10000.0):
    """The positions were added, not turned by: sinusoids change the length of a word, and mix with
    what it means."""
    table = sinusoidal(1 + int(positions.max()), x.shape[-1]).to(x)
    return x + table[positions]


@exercise.mistake
def sine_for_cosine(x, positions, base=10000.0):
    """Sine and cosine have changed places. At position 0 the angle is 0: is a word then left as it
    is?"""
    b = angles(x, positions, base)
    sine, cosine = b.sin().to(x.dtype), b.cos().to(x.dtype)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * sine - right * cosine, left * cosine + right * sine], dim=-1)


@exercise.mistake
def no_minus(x, positions, base=10000.0):
    """Both entries are sums, so lengths do not stay: this is no turn. One of the four products has
    a minus before it. Which one?"""
    b = angles(x, positions, base)
    sine, cosine = b.sin().to(x.dtype), b.cos().to(x.dtype)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cosine + right * sine, left * sine + right * cosine], dim=-1)


@exercise.mistake
def without_the_partner(x, positions, base=10000.0):
    """Both entries were given a sine or a cosine alone, without their partner: each column was made
    shorter, none was turned. What does x_(c + d/2) bring into column c?"""
    b = angles(x, positions, base)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * b.cos().to(x.dtype), right * b.sin().to(x.dtype)], dim=-1)


@exercise.mistake
def first_partner_overwritten(x, positions, base=10000.0):
    """The second entry was made from the first one as it was after the turn. Which x_c does the
    formula mean there, the old or the new?"""
    b = angles(x, positions, base)
    sine, cosine = b.sin().to(x.dtype), b.cos().to(x.dtype)
    left, right = x.chunk(2, dim=-1)
    left = left * cosine - right * sine
    return torch.cat([left, left * sine + right * cosine], dim=-1)


@exercise.mistake
def positions_ignored(x, positions, base=10000.0):
    """The words were turned by 0, 1, 2 and so on, whatever `positions` says. When a text is read
    further, where does the next word stand?"""
    return turned(x, angles(x, torch.arange(x.shape[-2], device=x.device), base))


@exercise.mistake
def positions_from_one(x, positions, base=10000.0):
    """All positions are one too far on. Which position leaves its word as it is, and did it?"""
    return turned(x, angles(x, positions + 1, base))


@exercise.mistake
def exponent_halved(x, positions, base=10000.0):
    """The speeds fall half as fast as they should: the exponent is c / d. What stands before c in
    the formula?"""
    return turned(x, angles(x, positions, base, speed=1.0))


@exercise.mistake
def exponent_doubled(x, positions, base=10000.0):
    """The speeds fall twice as fast as they should: if c is counted as 0, 2, 4, it has been doubled
    already. How often should the 2 of the formula be there?"""
    return turned(x, angles(x, positions, base, speed=4.0))


@exercise.mistake
def counted_from_one(x, positions, base=10000.0):
    """The first exponent is 2 / d, so no pair turns by one radian a position. From which number
    does c count, if column c = 0 is the first?"""
    return turned(x, angles(x, positions, base, first=1))


@exercise.mistake
def one_speed_for_all(x, positions, base=10000.0):
    """All pairs turn at the same speed, one radian a position. Which part of the formula makes
    later pairs slower?"""
    return turned(x, angles(x, positions, base, speed=0.0))


@exercise.mistake
def added_in_halves(x, positions, base=10000.0):
    """Sines and cosines were added to x, which is how absolute positions are given. Here each pair
    of columns is turned: what is the cosine multiplied by?"""
    b = angles(x, positions, base)
    return x + torch.cat([b.sin(), b.cos()], dim=-1).to(x.dtype)


stock.ignored(
    exercise,
    "base",
    "The base is 10000 whatever was asked for: `base` changes nothing. Models that "
    "read long texts choose another one.",
)


@exercise.alternative
def as_complex_numbers(x, positions, base=10000.0):
    d = x.shape[-1]
    exact = x.double()
    speeds = base ** (-torch.arange(0, d, 2, device=x.device).double() / d)
    angles = torch.outer(positions.double(), speeds)
    points = torch.complex(exact[..., : d // 2], exact[..., d // 2 :])
    points = points * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([points.real, points.imag], dim=-1).to(x.dtype)


@exercise.alternative
def with_a_rotated_half(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    c = torch.arange(half, device=x.device, dtype=torch.float64)
    angles = (positions[:, None] / base ** (c / half)).repeat(1, 2)
    rotated = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * angles.cos().to(x.dtype) + rotated * angles.sin().to(x.dtype)
