"""How likely one of k answers is right, estimated from more than k."""

import math

from course_lib.checking.exercise import Draw, Exercise
from course_lib.reward import pass_at_k

exercise = Exercise(
    reference=pass_at_k,
    lesson="18",
    title="One of k is right",
    minutes=7,
    difficulty=2,
    clauses={
        "drawn without replacement": "with_replacement",
        "it holds for n in the thousands": "factorials",
    },
    hints=(
        "Turn the question round: when is none of the k right? Of how many answers must all k "
        "then be drawn, and how many ways are there to draw k of n?",
        "Take the quotient of the two numbers of ways for one right answer: what is left when you "
        "cancel the factorials? And for a second one?",
        "In thousands a factorial is longer than any float. Multiply the chances one after the "
        "other, each of them between 0 and 1.",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "one of four is right, one is drawn", (4, 1, 1)
    yield "one of four is right, two are drawn", (4, 1, 2)
    yield "two of five are right, three are drawn", (5, 2, 3)
    n = draw.number(12, 20)
    yield "some of many", (n, draw.number(2, 4), draw.number(3, 6))
    yield "none is right", (draw.number(3, 9), 0, 2)
    yield "all are right", (7, 7, draw.number(2, 5))
    yield "fewer are wrong than are drawn", (8, 6, draw.number(3, 6))
    yield "as many are wrong as are drawn", (9, 5, 4)
    yield "all are drawn", (6, draw.number(1, 3), 6)
    yield "thousands, few right", (5000, draw.number(3, 9), 1000)
    yield "thousands, half of them right", (4000, 2000, 3)
    yield "thousands, all right", (3000, 3000, 1500)


@exercise.edges
def edges(draw: Draw):
    yield "thousands, many of them right and drawn", (5000, 2000, draw.number(1200, 1800))


@exercise.requires("one answer drawn is right as often as all of them are")
def share(answer, draw: Draw):
    n = draw.number(20, 40)
    c = draw.number(2, 19)
    return math.isclose(answer(n, c, 1), c / n, rel_tol=1e-6)


@exercise.requires("the mean over all ways to have drawn the n answers is the chance itself")
def unbiased(answer, draw: Draw):
    n, k, p = draw.number(5, 9), draw.number(2, 4), draw.number(2, 8) / 10
    ways = (math.comb(n, c) * p**c * (1 - p) ** (n - c) * answer(n, c, k) for c in range(n + 1))
    return math.isclose(sum(ways), 1 - (1 - p) ** k, rel_tol=1e-5)


@exercise.mistake
def with_replacement(n, c, k):
    """The share that is right was taken for the chance itself, as if an answer could be drawn
    twice. From few answers that is too small on average: how many are left after the first?"""
    return 1 - (1 - c / n) ** k


@exercise.mistake
def none_right(n, c, k):
    """This is the chance that none of the k is right. What is asked is the rest of it."""
    return 1 - pass_at_k(n, c, k)


@exercise.mistake
def all_right(n, c, k):
    """This is the chance that all k are right. One is enough."""
    return math.comb(c, k) / math.comb(n, k)


@exercise.mistake
def one_draw(n, c, k):
    """k is not used: this is the chance for one answer."""
    return c / n


@exercise.mistake
def share_times_k(n, c, k):
    """The chances of k answers were added. Two of them can be right at once, so the sum is too
    large."""
    return min(1.0, k * c / n)


@exercise.mistake
def exactly_one(n, c, k):
    """This is the chance that exactly one of the k is right. Two right ones do no harm."""
    if n - c < k - 1:
        return 0.0
    return c * math.comb(n - c, k - 1) / math.comb(n, k)


@exercise.mistake
def first_k(n, c, k):
    """The product begins at the wrong place: its factors belong to the numbers from n - c + 1 to
    n, of which there are c."""
    if n - c < k:
        return 1.0
    missed = 1.0
    for i in range(n - c, n):
        missed *= 1 - k / i if i else 0.0
    return 1 - missed


@exercise.mistake
def wrong_drawn(n, c, k):
    """Right and wrong have changed places: this is the chance that one of k is wrong."""
    return pass_at_k(n, n - c, k)


@exercise.mistake(raises=OverflowError)
def factorials(n, c, k):
    """Right for few answers. With thousands the numbers of ways fit into no float: which product
    has factors between 0 and 1?"""
    if n - c < k:
        return 1.0
    return 1 - float(math.comb(n - c, k)) / float(math.comb(n, k))


@exercise.mistake(raises=OverflowError)
def always_factorials(n, c, k):
    """Right for few answers. With thousands the numbers of ways fit into no float, even where no k
    are wrong: which product has factors between 0 and 1?"""
    return 1 - float(math.comb(n - c, k)) / float(math.comb(n, k))


@exercise.mistake
def product_goes_on(n, c, k):
    """Right for few answers. Where fewer than k of thousands are wrong, the first factors are large
    and negative: their product overflows, and infinity times 0 is NaN. Can k wrong answers be
    drawn there?"""
    missed = 1.0
    for i in range(n - c + 1, n + 1):
        missed *= 1 - k / i
    return 1 - missed


@exercise.alternative
def whole_numbers(n, c, k):
    ways = math.comb(n, k)
    return (ways - math.comb(n - c, k)) / ways


@exercise.alternative
def draw_by_draw(n, c, k):
    missed = 1.0
    for i in range(k):
        missed *= max(n - c - i, 0) / (n - i)
    return 1 - missed
