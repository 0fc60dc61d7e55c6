"""One token for two neighbours, wherever they are neighbours."""

from itertools import pairwise

from course_lib.byte_pair import merge
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=merge,
    lesson="10_byte_pairs",
    title="Two tokens become one",
    minutes=4,
    difficulty=1,
    hints=(
        "Go through a a a by hand with the pair (a, a). After you have written the new token, "
        "which of the three have you used up, and where do you go on?",
        "What do you do with a token that begins no pair? And with the last one, which has no "
        "right neighbour?",
    ),
    clauses={
        "from the left": "from_the_right",
        "do not overlap": "overlapping",
        "`new` is none of the tokens": GIVEN,
    },
)


@exercise.cases
def cases(draw: Draw):
    a, b, c = draw.integers(97, 123, 3).tolist()
    a, b, c = a, b + 26, c + 52  # three different ones
    yield "one pair", ([c, a, b], (a, b), 256)
    yield "the pair comes twice", ([a, b, c, a, b, c], (a, b), 256)
    yield "neighbours in the other order", ([b, a, c, b, a], (a, b), 256)
    yield "one token three times", ([a, a, a], (a, a), 256)
    yield "one token four times", ([b, a, a, a, a, c], (a, a), 257)
    yield "first half alone at the end", ([b, a, b, c, a], (a, b), 258)
    for name, n in (("a text of two letters", 30), ("a long text of two letters", 200)):
        yield name, (draw.integers(97, 99, n).tolist(), (97, 98), draw.number(256, 900))
    yield "doubles in a text", (draw.integers(97, 99, 50).tolist(), (98, 98), draw.number(256, 900))
    x = draw.number(10, 90)
    yield "digits that look like the pair", ([100 + x, b, x, 10 * b], (x, b), 256)
    yield "the pair is not there", ([c, a, c], (a, b), 256)
    yield "one token", ([a], (a, a), 256)
    yield "no token", ([], (a, b), 256)


@exercise.edges
def edges(draw: Draw):
    a, b, c = draw.integers(97, 123, 3).tolist()
    a, b, c = a, b + 26, c + 52  # three different ones
    yield "the pair ends in token 0", ([a, 0, b, a], (a, 0), 256)
    yield "the pair begins with token 0", ([a, 0, b, 0, b, 0], (0, b), 256)
    yield "a tuple of tokens", ((c, a, b, a, b), (a, b), 256)
    yield "tokens below zero", ([a, b, -1, a, b, c, -2], (a, b), 256)


def spell(ids, pair, new):
    return [token for x in ids for token in (pair if x == new else (x,))]


@exercise.requires("spelling the new token out again gives the old text")
def spelled_out(answer, draw: Draw):
    ids, new = draw.integers(97, 99, 60).tolist(), draw.number(256, 900)
    merged = answer(ids, (97, 98), new)
    return new in merged and spell(merged, (97, 98), new) == ids


@exercise.requires("no two neighbours of the result are the pair")
def none_left(answer, draw: Draw):
    for pair in ((97, 98), (98, 97), (97, 97)):
        merged = answer(draw.integers(97, 99, 60).tolist(), pair, 256)
        if pair in pairwise(merged) or 256 not in merged:
            return False
    return True


@exercise.mistake
def overlapping(ids, pair, new):
    """Occurrences that overlap were all merged: a a a has room for one pair, since the token in the
    middle can be used only once. Where do you go on after a merge?"""
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new)
            # a second one may begin in the middle of the first
            i += 1 if tuple(ids[i + 1 : i + 3]) == pair else 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@exercise.mistake
def in_the_digits(ids, pair, new):
    """The pair was looked for in the text of the numbers, where 7, 18 is also found inside 97, 18
    or 7, 181. Compare whole tokens, not the digits in which they are printed."""
    digits = " ".join(map(str, ids)).replace(f"{pair[0]} {pair[1]}", str(new))
    return [int(token) for token in digits.split()]


@exercise.mistake
def second_half_kept(ids, pair, new):
    """The second half of each pair is still there: the new token replaces both. How many tokens do
    you go on by after a merge?"""
    places = range(len(ids))
    return [new if tuple(ids[i : i + 2]) == pair else ids[i] for i in places]


@exercise.mistake
def from_the_right(ids, pair, new):
    """The text was searched from its end: of a a a the first token is left over, and not the last.
    From which side are occurrences found?"""
    return merge(ids[::-1], pair[::-1], new)[::-1]


@exercise.mistake
def first_alone(ids, pair, new):
    """Only the first occurrence was merged. How do you find the others?"""
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == pair:
            return [*ids[:i], new, *ids[i + 2 :]]
    return list(ids)


@exercise.mistake
def last_lost(ids, pair, new):
    """A last token that belongs to no pair is lost. It has no right neighbour to be compared with:
    who writes it?"""
    merged = merge(ids, pair, new)
    return merged if tuple(ids[-2:]) == pair and merged[-1:] == [new] else merged[:-1]


@exercise.mistake
def either_order(ids, pair, new):
    """Neighbours in the other order were merged too: (a, b) is not (b, a), or *on* would be
    *no*."""
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) in (pair, pair[::-1]):
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@exercise.mistake
def one_skipped(ids, pair, new):
    """After a merge one token too many was skipped. The new token replaces two: where is the
    third?"""
    merged, i = [], 0
    while i < len(ids):
        found = tuple(ids[i : i + 2]) == pair
        merged.append(new if found else ids[i])
        i += 3 if found else 1
    return merged


@exercise.mistake(raises=IndexError)
def beyond_the_end(ids, pair, new):
    """The last token has no right neighbour, so there is nothing at i + 1 there. What does a slice
    such as `ids[i : i + 2]` give at the end of a list?"""
    merged, i = [], 0
    while i < len(ids):
        found = (ids[i], ids[i + 1]) == pair
        merged.append(new if found else ids[i])
        i += 2 if found else 1
    return merged


@exercise.mistake
def merged_into_the_last(ids, pair, new):
    """Overlapping pairs were merged twice: of a, a, a the second a was used for two pairs. A token
    that has become part of a new one is gone. With what should the third a be compared?"""
    out = []
    for i, token in enumerate(ids):
        if i and (ids[i - 1], token) == pair:
            out[-1] = new
        else:
            out.append(token)
    return out


@exercise.alternative
def by_looking_back(ids, pair, new):
    merged = []
    for token in ids:
        merged.append(token)
        if merged[-2:] == list(pair):
            merged[-2:] = [new]
    return merged
