"""Scores fall with distance, in each head at its own rate."""

import torch

from course_lib.checking.exercise import GIVEN, REMARKED, Draw, Exercise
from course_lib.positions import alibi

exercise = Exercise(
    reference=alibi,
    lesson="04_distances",
    title="Farther counts less",
    minutes=8,
    difficulty=2,
    hints=(
        "What is to be subtracted from the score of a word and itself? And from that of a word "
        "three places away, in a head whose slope is 1/2?",
        "For 8 heads the slopes are 1/2, 1/4, and so on. Which is the last one, and what are the "
        "slopes of 4 heads?",
        "If the only query is the last of five keys, where does it stand? And where do two queries "
        "stand, if they are the last two?",
        "Each slope meets a whole table of distances. Which axes must a line of slopes be given, "
        "so that every head gets a table of its own?",
    ),
    clauses={
        "h counts from 1": "heads_from_zero",
        "the queries are the last n_q": "queries_from_zero",
        "To be added to the scores": GIVEN,
        "nothing is learned": GIVEN,
        "default float type": REMARKED,
    },
    # a negative axis that is also the last one
    equivalent=("-1 -> 1",),
)


@exercise.cases
def cases(draw: Draw):
    yield "three words, one head", (3, 3, 1)
    yield "a few words, two heads", (*[draw.number(3, 9)] * 2, 2)
    yield "a few words, eight heads", (*[draw.number(3, 9)] * 2, 8)
    yield "two queries, more keys", (2, draw.number(4, 50), 4)
    yield "one query", (1, draw.number(4, 50), 2)
    yield "sixteen heads", (2, draw.number(3, 50), 16)


@exercise.edges
def edges(draw: Draw):
    yield "one query after thousands of keys", (1, draw.number(2500, 3500), 1)


@exercise.requires("twice as far is twice as much, in every head", points=2)
def twice_as_far(answer, draw: Draw):
    n, heads = draw.number(5, 50), 2 ** draw.number(0, 5)
    bias = answer(n, n + draw.number(0, 50), heads).abs().flip(-1, -2)
    return (bias[:, 0, 1] != 0).all() and torch.allclose(bias[:, 0, 4], 4 * bias[:, 0, 1])


@exercise.requires("words to the right are treated like words to the left")
def both_sides(answer, draw: Draw):
    n = draw.number(5, 100)
    bias = answer(n, n, 2 ** draw.number(0, 5))
    return bias[0, 0, -1] != bias[0, 0, 0] and torch.equal(bias, bias.mT)


@exercise.requires("a few queries get the last rows of what all of them would get")
def last_rows(answer, draw: Draw):
    few, n, heads = draw.number(2, 9), draw.number(10, 50), 2 ** draw.number(0, 5)
    return torch.equal(answer(few, n, heads), answer(n, n, heads)[:, -few:])


@exercise.requires("from head to head, slopes fall by the same factor")
def same_factor(answer, draw: Draw):
    heads = 2 ** draw.number(1, 5)
    slopes = answer(1, draw.number(2, 100), heads)[:, 0, -2]
    factor = 2 ** (-8 / heads)
    return torch.allclose(slopes[1:], slopes[:-1] * factor) and slopes[0] != 0


def slopes(heads, first=1):
    return 2.0 ** (-8 * (torch.arange(heads) + first) / heads)


def distances(n_q, n_k):
    """Return j - i, the queries being the last n_q of the keys."""
    return torch.arange(n_k) - torch.arange(n_k - n_q, n_k).unsqueeze(-1)


def falling(slopes, distance):
    return -slopes[:, None, None] * distance


@exercise.mistake
def growing(n_q, n_k, heads):
    """The scores grow with distance: far words would be looked at most. Is the bias to be added to
    the scores positive or negative?"""
    return -alibi(n_q, n_k, heads)


@exercise.mistake
def heads_from_zero(n_q, n_k, heads):
    """The first head has the slope 1, and every other one that of the head before it. From which
    number does the docstring count h?"""
    return falling(slopes(heads, first=0), distances(n_q, n_k).abs())


@exercise.mistake
def sign_kept(n_q, n_k, heads):
    """Words on one side are taken down and those on the other are raised: the distance has kept its
    sign. Which two bars stand around i - j?"""
    return falling(slopes(heads), -distances(n_q, n_k))


@exercise.mistake
def sign_kept_and_turned(n_q, n_k, heads):
    """Words on the left are raised and those on the right are taken down: the distance has kept its
    sign. Which two bars stand around i - j?"""
    return falling(slopes(heads), distances(n_q, n_k))


@exercise.mistake
def queries_from_zero(n_q, n_k, heads):
    """Both queries and keys were counted from 0. When there are more keys, the queries are the last
    of them: where does a single query stand?"""
    distance = (torch.arange(n_k) - torch.arange(n_q).unsqueeze(-1)).abs()
    return falling(slopes(heads), distance)


@exercise.mistake
def slopes_of_eight_heads(n_q, n_k, heads):
    """The slopes are 1/2, 1/4, 1/8 for any number of heads. That is right for eight: which slope
    has the last head, however many there are?"""
    return falling(2.0 ** -(torch.arange(heads) + 1.0), distances(n_q, n_k).abs())


@exercise.mistake
def exponents_for_slopes(n_q, n_k, heads):
    """The exponents themselves, 8h / heads, serve as slopes, so they grow from head to head. What
    is raised to this power?"""
    exponents = 8 * (torch.arange(heads) + 1) / heads
    return falling(exponents, distances(n_q, n_k).abs())


@exercise.mistake
def powers_of_e(n_q, n_k, heads):
    """The slopes are powers of e. Which number does the formula raise?"""
    exponents = -8 * (torch.arange(heads) + 1) / heads
    return falling(torch.exp(exponents), distances(n_q, n_k).abs())


@exercise.mistake
def flattest_first(n_q, n_k, heads):
    """The heads are in the wrong order, the flattest first. As h grows, does 2^(-8h / heads) grow
    or fall?"""
    return alibi(n_q, n_k, heads).flip(0)


@exercise.mistake
def transposed(n_q, n_k, heads):
    """Queries and keys have changed axes. In a table of scores, each row is what one query sees."""
    return alibi(n_q, n_k, heads).mT


@exercise.mistake
def heads_last(n_q, n_k, heads):
    """The heads are on the last axis. Scores have the shape (heads, query, key): which axis must
    the slopes be on?"""
    return alibi(n_q, n_k, heads).movedim(0, -1)


@exercise.mistake
def masked_as_well(n_q, n_k, heads):
    """Words to the right were given minus infinity, as a causal mask does. Here they are treated
    like those to the left; whoever wants a mask adds one."""
    return alibi(n_q, n_k, heads).masked_fill(distances(n_q, n_k) > 0, -torch.inf)


@exercise.mistake
def right_side_free(n_q, n_k, heads):
    """Words to the right cost nothing, however far they are. The paper never sees them; here they
    are treated like those to the left."""
    return falling(slopes(heads), (-distances(n_q, n_k)).clamp(min=0))


@exercise.mistake
def exponents_rounded_down(n_q, n_k, heads):
    """The exponents -8 h / heads are whole numbers: `//` rounds them down. With up to 8 heads
    nothing shows. What has the second of 16 heads, and what the first?"""
    places = torch.arange(n_k - n_q, n_k).unsqueeze(-1) - torch.arange(n_k)
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) // heads)
    return -slopes[:, None, None] * places.abs()


@exercise.alternative
def entry_by_entry(n_q, n_k, heads):
    bias = torch.zeros(heads, n_q, n_k)
    for h in range(1, heads + 1):
        for row in range(n_q):
            for key in range(n_k):
                bias[h - 1, row, key] = -(2 ** (-8 * h / heads)) * abs(n_k - n_q + row - key)
    return bias


@exercise.alternative
def factor_by_factor(n_q, n_k, heads):
    power = heads
    while power > 1 and power % 2 == 0:
        power //= 2
    slopes = torch.full((heads,), 2 ** (-8 / heads)).cumprod(0)
    places = torch.arange(n_k, dtype=slopes.dtype)
    apart = torch.cdist(places[n_k - n_q :, None], places[:, None], p=1)
    return -torch.einsum("h,qk->hqk", slopes, apart)
