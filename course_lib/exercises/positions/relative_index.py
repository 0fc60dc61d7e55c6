"""How far away each key stands, as the number of a row in a table."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.positions import relative_index

exercise = Exercise(
    reference=relative_index,
    lesson="04_distances",
    title="Distances, numbered",
    minutes=6,
    difficulty=1,
    hints=(
        "The word on your right is one place further on. Is j - i positive or negative for it?",
        "One column of queries against one row of keys gives a whole table of differences. How do "
        "you turn a line of numbers into a column?",
        "A table of vectors has no row -3. By how much must all the distances move, so that the "
        "smallest of them becomes 0?",
    ),
    clauses={
        "0 means m or more tokens to the left": "turned_round",
        "i and j both count from 0": "queries_at_the_end",
    },
    # a negative axis that is also the last one
    equivalent=("-1 -> 1",),
)


@exercise.cases
def cases(draw: Draw):
    few, more = draw.number(3, 9), draw.number(10, 30)
    yield "two words", (2, 2, 1)
    yield "fewer queries than keys", (few, more, 2)
    yield "more queries than keys", (more, few, draw.number(2, few))
    yield "one word", (1, 1, 3)
    yield "nothing is too far", (few, few + 1, draw.number(few + 1, 10**6))
    yield "all distances alike", (3, few, 0)
    yield "one query", (1, more, draw.number(2, 9))


@exercise.edges
def edges(draw: Draw):
    long = draw.number(2100, 2500), draw.number(1100, 2000)
    yield "two queries, thousands of keys", (2, *long)


@exercise.requires("words that stand equally far apart have the same number")
def equally_far(answer, draw: Draw):
    index = answer(draw.number(3, 50), draw.number(3, 50), draw.number(1, 50))
    return index[0, 0] < index[0, 1] and torch.equal(index[1:, 1:], index[:-1, :-1])


@exercise.requires("as many steps left as right lie equally far from the middle row")
def mirrored(answer, draw: Draw):
    n, furthest = draw.number(3, 100), draw.number(1, 100)
    index = answer(n, n, furthest)
    return index[0, 1] != index[1, 0] and torch.equal(index.mT, 2 * furthest - index)


@exercise.requires("all rows of the table are used, and no others")
def rows_used(answer, draw: Draw):
    n, furthest = draw.number(100, 200), draw.number(3, 100)
    return torch.equal(answer(n, n, furthest).unique(), torch.arange(2 * furthest + 1))


def differences(n_q, n_k):
    return torch.arange(n_k) - torch.arange(n_q).unsqueeze(-1)


@exercise.mistake
def turned_round(n_q, n_k, max_distance):
    """Left and right have changed places: this is i - j. A key on the right of its query has the
    larger j; on which side of the middle should its number lie?"""
    return (-differences(n_q, n_k)).clamp(-max_distance, max_distance) + max_distance


@exercise.mistake
def transposed(n_q, n_k, max_distance):
    """Queries and keys have changed axes. Row i is to hold what query i sees: how many rows are
    there?"""
    return relative_index(n_q, n_k, max_distance).mT


@exercise.mistake
def not_clipped(n_q, n_k, max_distance):
    """Distances past the largest have numbers of their own, and a table of 2m + 1 rows has no row
    for them. What does `clip` do in the formula?"""
    return differences(n_q, n_k) + max_distance


@exercise.mistake
def not_moved(n_q, n_k, max_distance):
    """Words on the left have negative numbers. As an index, -1 is the last row of a table: which
    number should the largest distance to the left have?"""
    return differences(n_q, n_k).clamp(-max_distance, max_distance)


@exercise.mistake
def moved_before_the_clip(n_q, n_k, max_distance):
    """The distances were moved first and clipped to -m and m afterwards. Which numbers can the
    moved ones have, and which of them did the clip take away?"""
    return (differences(n_q, n_k) + max_distance).clamp(-max_distance, max_distance)


@exercise.mistake
def clipped_on_one_side(n_q, n_k, max_distance):
    """Distances to the right were clipped, those to the left were not. The formula has two limits:
    -m and m."""
    return differences(n_q, n_k).clamp(max=max_distance) + max_distance


@exercise.mistake
def sign_lost(n_q, n_k, max_distance):
    """Left and right have the same number: the sign of the distance is lost. Is the word before the
    same to a query as the word after?"""
    return differences(n_q, n_k).abs().clamp(max=max_distance) + max_distance


@exercise.mistake
def counted_from_one(n_q, n_k, max_distance):
    """All numbers are one too large: the largest distance to the left is to have row 0. How many
    rows lie before the middle one?"""
    return relative_index(n_q, n_k, max_distance) + 1


@exercise.mistake
def limits_too_close(n_q, n_k, max_distance):
    """The limits are one too close: m words away is already the same as m - 1. How many rows has
    the table if all distances from -m to m have their own?"""
    if max_distance == 0:
        return relative_index(n_q, n_k, 0)
    near = max_distance - 1
    return differences(n_q, n_k).clamp(-near, near) + max_distance


@exercise.mistake
def queries_at_the_end(n_q, n_k, max_distance):
    """The queries were taken to be the last words among the keys. That is right for a text read
    further and further; here i and j both count from 0."""
    distance = differences(n_q, n_k) - (n_k - n_q)
    return distance.clamp(-max_distance, max_distance) + max_distance


@exercise.mistake
def as_floats(n_q, n_k, max_distance):
    """The right numbers, but as floats, and no table has a row 2.0. Which torch function makes
    whole numbers?"""
    return relative_index(n_q, n_k, max_distance).float()


@exercise.mistake
def as_lists(n_q, n_k, max_distance):
    """The right numbers, but in lists of Python's. What is to be returned is one tensor: which
    function of torch makes it from them?"""
    return relative_index(n_q, n_k, max_distance).tolist()


@exercise.mistake
def distances_alone(n_q, n_k, max_distance):
    """These are distances without their sign, from 0 to m: left and right have the same number.
    Which number should the largest distance to the left have, and which the one to the right?"""
    return differences(n_q, n_k).abs().clamp(max=max_distance)


@exercise.mistake
def clipped_as_if_moved(n_q, n_k, max_distance):
    """Distances to the left are all alike: they were clipped to 0 and 2m before they were moved.
    Between which two numbers does a distance lie before m is added?"""
    return differences(n_q, n_k).clamp(0, 2 * max_distance) + max_distance


@exercise.mistake
def places_clipped(n_q, n_k, max_distance):
    """The places were clipped, and not the distances: two words far down the text seem to be in one
    place. How far apart are the words 8 and 9, for a largest distance of 2?"""
    places = torch.arange(max(n_q, n_k)).clamp(max=max_distance)
    return places[:n_k] - places[:n_q].unsqueeze(-1) + max_distance


@exercise.alternative
def pair_by_pair(n_q, n_k, max_distance):
    index = torch.zeros(n_q, n_k, dtype=torch.long)
    for i in range(n_q):
        for j in range(n_k):
            index[i, j] = max(-max_distance, min(max_distance, j - i)) + max_distance
    return index


@exercise.alternative
def windows_of_one_line(n_q, n_k, max_distance):
    line = torch.arange(1 - n_q, n_k) + max_distance
    line[line < 0] = 0
    line[line > 2 * max_distance] = 2 * max_distance
    return line.unfold(0, n_k, 1).flip(0)
