"""A short description of a long set, from which its likeness to another can be read."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.corpus import PRIME, jaccard, min_hash

exercise = Exercise(
    reference=min_hash,
    lesson="10_data",
    title="A set in a few numbers",
    minutes=12,
    difficulty=2,
    hints=(
        "There are m shingles and h hashes, so (a s + b) has two axes. Which of them should be "
        "left in the end, and which is the minimum taken over?",
        "Where do `a` and `b` need a further axis, so that each hash meets each shingle?",
        "Is the remainder taken before or after the minimum? Which of the two makes the order of "
        "the members look random?",
    ),
    clauses={
        "Two sets agree in a share": "the share of equal numbers",
        "must fit into 64 bits": GIVEN,
    },
    # a matrix of hashes and shingles has two axes, so the last one is the second one
    equivalent=("-1 -> 1",),
)


def drawn(draw: Draw, m: int, h: int, prime: int = PRIME) -> tuple:
    """Draw m different shingles, and h hashes."""
    shingles = draw.integers(0, prime, m).unique()
    return shingles, draw.integers(1, prime, h), draw.integers(0, prime, h), prime


@exercise.cases
def cases(draw: Draw):
    yield "two shingles, one hash", drawn(draw, 2, 1)
    yield "five shingles, three hashes", drawn(draw, 5, 3)
    yield "as many hashes as shingles", drawn(draw, 4, 4)
    yield "many shingles", drawn(draw, 300, 7)
    yield "more hashes than shingles", drawn(draw, 3, 20)
    yield "one shingle", drawn(draw, 1, 5)
    yield "a small prime", drawn(draw, 6, 4, 101)
    yield "another prime", drawn(draw, 8, 5, 10_007)


@exercise.edges
def edges(draw: Draw):
    large = 10**12 + 39
    fitting = draw.integers(0, 2**20, 6), draw.integers(1, 2**20, 4)
    yield "a prime above 2^31", (*fitting, draw.integers(0, large, 4), large)
    shingles, a, b, _ = drawn(draw, 4, 3)
    yield "numbers that are 0", (shingles, a, (-a * shingles[0]) % PRIME, PRIME)
    yield "shingles below zero", (shingles - 2**30, a, b, PRIME)


@exercise.requires("the order of the shingles, and repeated ones, change nothing")
def sets(answer, draw: Draw):
    shingles, *hashes = drawn(draw, 9, 6)
    order = draw.normal(len(shingles)).argsort()
    again = torch.cat([shingles[order], shingles[:3]])
    found = answer(shingles, *hashes)
    return torch.equal(answer(again, *hashes), found) and len(found.unique()) > 1


@exercise.requires("the share of equal numbers is near the Jaccard similarity", points=2)
def estimates(answer, draw: Draw):
    common, *hashes = drawn(draw, 60, 600)
    one, other = (torch.cat([common, drawn(draw, n, 1)[0]]) for n in (20, 40))
    equal = answer(one, *hashes) == answer(other, *hashes)
    return len(equal) == 600 and abs(equal.double().mean() - jaccard(one, other)) < 0.1


@exercise.requires("the numbers of a union are the least of those of its parts")
def unions(answer, draw: Draw):
    one, *hashes = drawn(draw, 7, 12)
    other, *_ = drawn(draw, 5, 1)
    least = torch.minimum(answer(one, *hashes), answer(other, *hashes))
    return len(least) == 12 and torch.equal(answer(torch.cat([one, other]), *hashes), least)


def values(shingles, a, b, prime):
    return (a.unsqueeze(-1) * shingles + b.unsqueeze(-1)) % prime


@exercise.mistake
def over_the_hashes(shingles, a, b, prime):
    """The minimum was taken over the hashes, so each shingle got a number. What should be left is a
    number for each hash."""
    return values(shingles, a, b, prime).amin(0)


@exercise.mistake
def largest(shingles, a, b, prime):
    """The largest value of each hash was kept. Which one does *min* hash keep?"""
    return values(shingles, a, b, prime).amax(-1)


@exercise.mistake
def no_remainder(shingles, a, b, prime):
    """Without the remainder a s + b grows with s: the least shingle is least under every hash. What
    makes the order look random?"""
    return (a.unsqueeze(-1) * shingles + b.unsqueeze(-1)).amin(-1)


@exercise.mistake
def remainder_too_late(shingles, a, b, prime):
    """The remainder was taken after the minimum, or the least shingle was hashed alone: the least
    shingle then wins under every hash. What should the minimum compare?"""
    return no_remainder(shingles, a, b, prime) % prime


@exercise.mistake
def without_b(shingles, a, b, prime):
    """b was left out: the hash is (a s + b) mod prime."""
    return values(shingles, a, torch.zeros_like(b), prime).amin(-1)


@exercise.mistake
def b_too_late(shingles, a, b, prime):
    """b was added after the remainder, so values can be as large as prime and more."""
    return ((a.unsqueeze(-1) * shingles) % prime + b.unsqueeze(-1)).amin(-1)


@exercise.mistake
def exchanged(shingles, a, b, prime):
    """a and b have changed places: which is the factor?"""
    return values(shingles, b, a, prime).amin(-1)


@exercise.mistake
def one_hash(shingles, a, b, prime):
    """One hash was used for all: each entry of `a` and `b` is a hash of its own."""
    return values(shingles, a[:1], b[:1], prime).amin(-1).expand(len(a)).clone()


@exercise.mistake
def places(shingles, a, b, prime):
    """The place of the least shingle was returned, not its value: two sets keep the same members at
    different places."""
    return values(shingles, a, b, prime).argmin(-1)


@exercise.mistake
def through_floats(shingles, a, b, prime):
    """The values went through floats, which hold 24 bits of a number: the product of two numbers
    below 2^31 has 62."""
    products = a.unsqueeze(-1).float() * shingles.float() + b.unsqueeze(-1)
    return (products % prime).amin(-1).long()


@exercise.mistake
def through_float64(shingles, a, b, prime):
    """The values went through float64, which holds 53 bits of a number: the product of two numbers
    below 2^31 has 62."""
    products = a.unsqueeze(-1).double() * shingles.double() + b.unsqueeze(-1)
    return (products % prime).amin(-1).long()


@exercise.mistake
def through_int32(shingles, a, b, prime):
    """The values went through int32, which holds 31 bits of a number: the product of two numbers
    below 2^31 has 62, and what does not fit is lost."""
    products = a.unsqueeze(-1).int() * shingles.int() + b.unsqueeze(-1).int()
    return (products % prime).amin(-1).long()


@exercise.mistake(raises=RuntimeError)
def axis_forgotten(shingles, a, b, prime):
    """`a` and `shingles` were multiplied as they are, number by number. Each hash must meet each
    shingle: which axis is missing?"""
    return ((a * shingles + b) % prime).amin(-1)


@exercise.alternative
def hash_by_hash(shingles, a, b, prime):
    return torch.stack([((x * shingles + y) % prime).min() for x, y in zip(a, b, strict=True)])


@exercise.alternative
def outer(shingles, a, b, prime):
    return torch.remainder(torch.outer(shingles, a) + b, prime).min(dim=0).values
