"""A layer deletes what another one wrote: it writes the negative of what it reads."""

import torch
from torch.nn import functional as F

from course_lib.add_norm import erase_direction
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=erase_direction,
    lesson="07_erase",
    title="Delete one direction",
    minutes=10,
    difficulty=2,
    hints=(
        "A token is (3, 4), and the direction points along the second axis, (0, 2). What should "
        "be left, and what was the 2 good for?",
        "A token's part along u is one number: which product of the two gives it, and over which "
        "axis does it sum?",
        "This number has lost the axis of the entries, and it is to be multiplied by u, which has "
        "no other. Which shapes must the two have for a result of the stream's shape?",
    ),
    clauses={
        "A layer deletes by writing": GIVEN,
        "as short as 1e-15": "neither the length",
    },
    equivalent=(
        # a direction has one axis only
        "1 -> 0",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "one token", (draw.normal(3), draw.normal(3))
    yield "four tokens", (draw.normal(4, 3), 5 * draw.normal(3))
    yield "as many tokens as entries", (draw.normal(4, 4), draw.normal(4))
    yield "a batch of sentences", (draw.normal(2, 3, 5), 0.1 * draw.normal(5))
    yield "two batch dimensions", (draw.normal(3, 2, 4, 6), draw.normal(6))
    yield "a direction against the axes", (draw.normal(2, 3), torch.tensor([-2.0, 0.0, -1.0]))


@exercise.requires("nothing is left along the direction, and something is left across it")
def nothing_left(answer, draw: Draw):
    direction = 3 * draw.normal(5)
    found = answer(draw.normal(2, 4, 5), direction)
    return found.abs().amax(-1).min() > 0 and (found @ direction).abs().max() < 1e-4


@exercise.requires("how much of the direction a token had before plays no part")
def what_was_there(answer, draw: Draw):
    stream, direction = draw.normal(4, 3), draw.normal(3)
    found = answer(stream, direction)
    written = stream + 4 * draw.normal(4, 1) * direction
    return found.abs().max() > 0 and torch.allclose(answer(written, direction), found, atol=1e-4)


@exercise.requires("neither the length of the direction nor its sign plays a part", points=2)
def any_length(answer, draw: Draw):
    stream, direction = draw.normal(4, 3), draw.normal(3)
    plain = answer(stream, direction)
    erased = plain.abs().max() > 0 and not torch.allclose(plain, stream, atol=1e-3)
    return erased and all(
        torch.allclose(answer(stream, length * direction), plain, atol=1e-4)
        for length in (-2.0, 50.0, 1e-6, 1e-15, 1e15)
    )


def unit_of(direction):
    return F.normalize(direction, dim=-1)


def along(stream, unit):
    return (stream @ unit).unsqueeze(-1) * unit


@exercise.mistake
def not_of_length_one(stream, direction):
    """The direction was taken as it came, without bringing it to length one: twice as long, it
    takes away four times as much. What has to be divided, and by what?"""
    return stream - along(stream, direction)


@exercise.mistake
def largest_entry_of_one(stream, direction):
    """The largest entry of the direction was brought to 1, and its length is not 1 yet. What has to
    be divided by what, so that the squares sum to 1?"""
    return stream - along(stream, direction / direction.detach().abs().max())


@exercise.mistake
def length_divided_out_once(stream, direction):
    """The length was divided out once only: it stands in the amount, where it was removed, and
    again in what is subtracted. In how many places does the formula have u?"""
    return stream - (stream @ unit_of(direction)).unsqueeze(-1) * direction


@exercise.mistake
def direction_subtracted(stream, direction):
    """The direction itself was subtracted from every token, however much of it the token had. How
    far does each token lie along it?"""
    return stream - direction


@exercise.mistake
def unit_subtracted(stream, direction):
    """The direction, at length one, was subtracted from every token, however much of it the token
    had. How far does each token lie along it?"""
    return stream - unit_of(direction)


@exercise.mistake
def kept_the_part_along(stream, direction):
    """This is the part along the direction: what was to go has stayed, and the rest is gone. What
    is left of x without that part?"""
    return along(stream, unit_of(direction))


@exercise.mistake
def length_at_least(stream, direction):
    """`F.normalize` divides by 1e-12 at least, so a shorter direction stays short, and hardly
    anything is deleted. By what can it be divided before?"""
    return stream - along(stream, unit_of(direction))


@exercise.mistake
def written_alone(stream, direction):
    """This is what the layer writes, the negative of what it read. What does the stream hold after
    that?"""
    return -along(stream, unit_of(direction))


@exercise.mistake
def added(stream, direction):
    """The part along the direction was added, so each token now has it twice. Which sign
    deletes?"""
    return stream + along(stream, unit_of(direction))


@exercise.mistake
def mirrored(stream, direction):
    """The part was subtracted twice, so each token is mirrored: as much as it had along the
    direction, it now has against it."""
    return stream - 2 * along(stream, unit_of(direction))


@exercise.mistake
def amounts_alone(stream, direction):
    """This is how far each token lies along the direction, one number a token. What is to be done
    with that number, so that the stream keeps its shape?"""
    return stream @ unit_of(direction)


@exercise.mistake
def amount_subtracted_everywhere(stream, direction):
    """The amounts themselves were subtracted, one number from all the entries of a token. Along
    which vector should each amount be laid?"""
    return stream - (stream @ unit_of(direction)).unsqueeze(-1)


@exercise.mistake
def not_summed(stream, direction):
    """Entry by entry, each column was multiplied by its share of the direction, and nothing was
    summed. How far a token lies along u is one number: which sum gives it?"""
    return stream - stream * unit_of(direction) ** 2


@exercise.mistake
def one_amount_for_all(stream, direction):
    """One amount serves all the tokens: the sum ran over the whole stream. How far does each token
    lie along the direction by itself?"""
    unit = unit_of(direction)
    return stream - (stream * unit).sum() * unit


@exercise.mistake
def mean_amount(stream, direction):
    """One amount serves all the tokens, the mean of theirs: what they have in common is gone, and
    their differences are still there. How many amounts do four tokens have?"""
    unit = unit_of(direction)
    return stream - (stream @ unit).mean() * unit


@exercise.mistake(raises=RuntimeError)
def axis_lost(stream, direction):
    """The amounts have lost their axis, so they meet the entries of u instead of the tokens.
    `unsqueeze(-1)` or `keepdim` gives it back."""
    unit = unit_of(direction)
    return stream - (stream @ unit) * unit


@exercise.mistake
def only_positive_amounts(stream, direction):
    """Each token lost only what it had along the direction where that was positive. A token may lie
    against the direction as well: what is to become of that?"""
    unit = unit_of(direction)
    return stream - (stream @ unit).relu().unsqueeze(-1) * unit


@exercise.mistake
def sign_dropped(stream, direction):
    """Each token lost its whole size along the direction, with the sign of the amount dropped, so
    tokens that lie against the direction do so twice as much now. What does the sign say?"""
    unit = unit_of(direction)
    return stream - (stream @ unit).abs().unsqueeze(-1) * unit


@exercise.mistake
def words_of_length_one(stream, direction):
    """The tokens were brought to length one as well. The stream's own sizes are to stay: whose
    length does the formula divide by?"""
    words = F.normalize(stream, dim=-1)
    return words - along(words, unit_of(direction))


@exercise.mistake
def amounts_detached(stream, direction):
    """The right results, but the amounts pass no gradient on: they were cut off by `.detach()`,
    `.data` or `no_grad`. When a token moves along the direction, does the result move?"""
    unit = unit_of(direction)
    return stream - (stream @ unit).detach().unsqueeze(-1) * unit


@exercise.mistake
def columns_set_to_zero(stream, direction):
    """Every column in which the direction has an entry was set to zero. A direction may lie across
    the axes: how much of it does each token have?"""
    return stream.masked_fill(direction != 0, 0.0)


@exercise.alternative
def by_a_projection_matrix(stream, direction):
    share = torch.outer(direction, direction) / (direction @ direction)
    across = torch.eye(len(direction)).to(direction) - share
    return stream @ across


@exercise.alternative
def as_a_fraction(stream, direction):
    amount = (stream * direction).sum(-1, keepdim=True) / (direction**2).sum()
    return stream - amount * direction
