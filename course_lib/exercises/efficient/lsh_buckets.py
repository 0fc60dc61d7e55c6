"""Tokens that point alike fall into one bucket."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.lsh import lsh_buckets

exercise = Exercise(
    reference=lsh_buckets,
    lesson="14",
    title="Which way does a token point?",
    minutes=6,
    difficulty=1,
    hints=(
        "In a plane, take two directions: right and up. How many buckets are there with their "
        "opposites, and where does each of them begin and end?",
        "What does a dot product with a direction say of a token? And what would the one with the "
        "opposite direction say?",
        "The bucket is the number of a direction, not how far the token reaches in it. Which "
        "function returns the place of the largest number?",
    ),
    clauses={
        "Tokens that point alike": GIVEN,
        "Of equally large entries the first counts": "the_largest_either_way",
        "Time O": GIVEN,
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "four tokens, two directions", (draw.normal(4, 3), draw.normal(3, 2))
    unlike = torch.tensor([0.1, 1.0, 30.0])
    yield "directions of unlike lengths", (draw.normal(9, 4), draw.normal(4, 3) * unlike)
    yield "as many directions as numbers", (draw.normal(20, 3), draw.normal(3, 3))
    yield "one direction and its opposite", (draw.normal(6, 3), draw.normal(3, 1))
    yield "nine tokens, four directions", (draw.normal(9, 5), draw.normal(5, 4))
    yield (
        "a token of zeros",
        (draw.normal(4, 3) * torch.tensor([[1], [0], [1], [1]]), draw.normal(3, 2)),
    )
    yield "as far along one as against another", (torch.tensor([[-3.0, 3, 1]]), torch.eye(3))
    yield "one token", (draw.normal(1, 2), draw.normal(2, 3))
    yield "a batch of texts", (draw.normal(2, 7, 4), draw.normal(4, 3))
    yield "two batch dimensions", (draw.normal(3, 2, 5, 4), draw.normal(4, 6))
    yield "as many tokens as each has numbers", (draw.normal(4, 4), draw.normal(4, 3))


@exercise.requires("opposite tokens fall into opposite buckets, half the buckets apart")
def opposite(answer, draw: Draw):
    x, rotations = draw.normal(20, 3), draw.normal(3, 4)
    return ((answer(x, rotations) - answer(-x, rotations)).abs() == 4).all()


@exercise.requires("how long a token is does not matter, where it points does")
def length(answer, draw: Draw):
    x, rotations = draw.normal(40, 3), draw.normal(3, 4)
    found = answer(x, rotations)
    return len(found.unique()) > 2 and all(
        torch.equal(answer(factor * x, rotations), found) for factor in (50, 2**-30)
    )


@exercise.requires("a token that is one of the directions has its number, the opposite one's too")
def directions(answer, draw: Draw):
    rotations = torch.linalg.qr(draw.normal(4, 4)).Q
    found = answer(torch.cat([rotations.mT, -rotations.mT]), rotations)
    return found.tolist() == list(range(8))


@exercise.mistake
def no_opposites(x, rotations):
    """Only half of the buckets are in use: the opposite directions were not counted. Where does a
    token belong that points away from all of them?"""
    return (x @ rotations).argmax(-1)


@exercise.mistake
def opposite_bucket(x, rotations):
    """Tokens fall into the bucket opposite their own. Do the directions come first, and then
    their opposites? And is it the largest number whose place is taken?"""
    along = x @ rotations
    return torch.cat([-along, along], dim=-1).argmax(-1)


@exercise.mistake
def without_sign(x, rotations):
    """A token and its opposite share a bucket: the absolute value has forgotten which of the two
    ends it was."""
    return (x @ rotations).abs().argmax(-1)


@exercise.mistake
def the_largest_either_way(x, rotations):
    """The largest absolute value came first, and its sign decided the half. Where a token reaches
    as far along one direction as against another, [x R, -x R] has the first of the two in front."""
    along = x @ rotations
    place = along.abs().argmax(-1)
    against = along.gather(-1, place.unsqueeze(-1)).squeeze(-1) < 0
    return place + along.shape[-1] * against


@exercise.mistake
def in_pairs(x, rotations):
    """Each direction is followed by its own opposite, so the buckets have other numbers: [x R, -x
    R] has all directions first, then all opposites."""
    along = x @ rotations
    return torch.stack([along, -along], dim=-1).flatten(-2).argmax(-1)


@exercise.mistake
def by_signs(x, rotations):
    """Every direction was asked only on which side of it the token lies, and the answers were read
    as digits: another hash, with many more buckets. Here the direction that fits best counts."""
    digits = (x @ rotations > 0).long()
    return (digits * 2 ** torch.arange(digits.shape[-1])).sum(-1)


@exercise.mistake
def the_reach(x, rotations):
    """This is how far each token reaches, not in which direction: the largest number itself, where
    its place was asked."""
    along = x @ rotations
    return torch.cat([along, -along], dim=-1).amax(-1)


@exercise.mistake
def over_words(x, rotations):
    """The tokens were compared with each other, not the directions: there is one number for each
    direction. Which axis is that of the directions?"""
    along = x @ rotations
    return torch.cat([along, -along], dim=-1).argmax(-2)


@exercise.mistake
def beneath(x, rotations):
    """The opposite tokens were put below the tokens, so that there are twice as many rows. Along
    which axis should they be joined?"""
    along = x @ rotations
    return torch.cat([along, -along], dim=-2).argmax(-1)


@exercise.mistake
def one_for_all(x, rotations):
    """The result of the whole text is one number: `argmax` without an axis looks at all tokens
    together."""
    along = x @ rotations
    return torch.cat([along, -along], dim=-1).argmax()


@exercise.mistake
def axis_kept(x, rotations):
    """The axis over which the largest was sought is still there, with the size 1. A text of n
    tokens has n buckets."""
    along = x @ rotations
    return torch.cat([along, -along], dim=-1).argmax(-1, keepdim=True)


@exercise.mistake
def directions_of_length_one(x, rotations):
    """The directions were brought to length one first. Here they are taken as they come: a longer
    direction gets more tokens."""
    along = x @ (rotations / rotations.norm(dim=0))
    return torch.cat([along, -along], dim=-1).argmax(-1)


@exercise.mistake
def rows_as_directions(x, rotations):
    """Right where there are not as many directions as numbers. Where there are, the rows of the
    matrix were taken as directions: they are its columns."""
    d, count = rotations.shape
    along = x @ (rotations.mT if d == count else rotations)
    return torch.cat([along, -along], dim=-1).argmax(-1)


@exercise.mistake
def over_the_first_axis(x, rotations):
    """The largest was taken along the first axis, over the tokens or the batch. A token's bucket
    is the direction in which it reaches farthest: on which axis are the directions?"""
    along = x @ rotations
    return torch.cat([along, -along], dim=-1).argmax(0)


@exercise.alternative
def with_a_mirror(x, rotations):
    directions = torch.cat([rotations, -rotations], dim=1)
    return torch.einsum("...nd,db->...nb", x, directions).max(dim=-1).indices
