"""Learning a vocabulary: merge the commonest neighbours, count again, and go on."""

from collections import Counter
from itertools import pairwise

from course_lib.byte_pair import merge, train
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=train,
    lesson="10_byte_pairs",
    title="Which pairs are worth a token?",
    minutes=7,
    difficulty=2,
    hints=(
        "Do two rounds by hand on a b a b a b c a b. Which pair wins the first round, what is "
        "the text then, and can the pair that was second before still win?",
        "What do a text and the same text moved on by one token have to do with its pairs of "
        "neighbours? What counts equal things in one call?",
        "Of equally frequent pairs the first in the text wins. In which order does a Counter, or "
        "a dict, keep what is put into it, and which of equals does `max` return?",
        "When is a merge no longer worth a token: how often must a pair occur at least?",
    ),
    clauses={
        "the most frequent pair": "rarest",
        "overlaps counted": "counted_once",
        "the one that comes first in the text": "last_of_equals",
        "makes the token 256 + i": "numbered_from_255",
        "when no pair occurs twice": "single_pairs",
        "Each round reads the whole text": GIVEN,
    },
)


def text(draw: Draw, n: int, letters: int = 3) -> list[int]:
    return draw.integers(97, 97 + letters, n).tolist()


@exercise.cases
def cases(draw: Draw):
    x = draw.number(100, 250)
    yield "one merge", ([97, 98, x, 97, 98], 1)
    yield "a short text", (text(draw, 12), 3)
    yield "a text of three letters", (text(draw, 60), 6)
    yield "a longer text", (text(draw, 300, 5), 20)
    # (a, a) occurs here three times if overlaps count, and twice if not
    yield "overlaps count", ([x, 97, 97, 97, 97, x, 98, 99, 1, 98, 99, 2, 98, 99], 1)
    # b c and a x are equally frequent
    yield "the first of equals wins", ([98, 99, 97, x, 3, 97, x, 98, 99], 1)
    yield "a tie that the second merge decides", ([x, 98, 97, x, 98, 2, 1, 97, 3, 97, 4], 5)
    yield "more merges than the text has", ([97, 98, 97, 98, x, 97, 98], 50)
    yield "no pair comes twice", ([97, 98, x, 99], 5)
    yield "no merge is asked for", (text(draw, 20), 0)


@exercise.edges
def edges(draw: Draw):
    x = draw.number(100, 250)
    # after the first merge, an x that is merged with nothing is half of the commonest pair
    yield "the best pair ends in token 0", ([x, 0, 98, x, 0, 99, x, 0, 98, x], 4)
    yield "a tuple of tokens", (tuple(text(draw, 30)), 4)


@exercise.requires("each merge is the commonest pair of the text that the merges before it left")
def commonest(answer, draw: Draw):
    ids = text(draw, 200, 4)
    merges = answer(ids, 10)
    for i, pair in enumerate(merges):
        counts = Counter(pairwise(ids))
        if counts[tuple(pair)] < max(counts.values()):
            return False
        ids = merge(ids, tuple(pair), 256 + i)
    return len(merges) == 10


@exercise.requires("fewer merges are the first of more merges")
def prefix(answer, draw: Draw):
    ids = text(draw, 150, 4)
    more = answer(ids, 9)
    return len(more) == 9 and answer(ids, 4) == more[:4]


def learn(ids, count, *, first=256, least=2, best=None, count_pairs=None, renew=True):
    """Train in the way of the reference, with one thing changed."""
    merges = []
    for new in range(first, first + count):
        pairs = (count_pairs or (lambda x: Counter(pairwise(x))))(ids)
        if not pairs:
            break
        chosen = best(pairs) if best else max(pairs, key=pairs.get)
        if pairs[chosen] < least:
            break
        merges.append(chosen)
        if renew:
            ids = merge(ids, chosen, new)
    return merges


@exercise.mistake
def counted_once(ids, count):
    """The pairs were counted once, at the beginning. After a merge the text is another: some pairs
    have become rarer, and there are new ones. When should they be counted?"""
    pairs = Counter(pairwise(ids))
    return [pair for pair, times in pairs.most_common(count) if times > 1]


@exercise.mistake
def never_merged(ids, count):
    """The same pair is learned again and again: it was never merged in the text. What does the next
    round count?"""
    return learn(ids, count, renew=False)


@exercise.mistake
def numbered_from_255(ids, count):
    """The new tokens are numbered from 255 or less, but 0 to 255 are the bytes. What is the number
    of the first merge?"""
    return learn(ids, count, first=255)


@exercise.mistake
def numbered_from_0(ids, count):
    """The new tokens are numbered from 0, which are bytes already. What is the number of the first
    merge?"""
    return learn(ids, count, first=0)


@exercise.mistake
def numbered_from_257(ids, count):
    """The first merge got the number 257. The bytes end with 255: what is the next free number?"""
    return learn(ids, count, first=257)


@exercise.mistake
def numbered_after_the_text(ids, count):
    """The new tokens are numbered on from the largest in the text. All 256 bytes come first,
    whether they occur or not: what is the number of the first merge?"""
    return learn(ids, count, first=max(ids, default=255) + 1)


@exercise.mistake
def single_pairs(ids, count):
    """Pairs that occur only once were merged as well. Such a merge learns one place of this text by
    heart: when does learning end?"""
    return learn(ids, count, least=1)


@exercise.mistake
def three_times(ids, count):
    """A pair must occur three times here before it is merged. How often does the docstring ask
    for?"""
    return learn(ids, count, least=3)


@exercise.mistake
def largest_of_equals(ids, count):
    """Of equally frequent pairs the one with the largest numbers won: `max` over (count, pair)
    compares the pairs themselves in a tie. Which of equals comes first in the text?"""
    return learn(ids, count, best=lambda pairs: max(pairs, key=lambda pair: (pairs[pair], pair)))


@exercise.mistake
def smallest_of_equals(ids, count):
    """Of equally frequent pairs the one with the smallest numbers won. The tie goes to the pair
    that comes first in the text: was the count sorted on the way?"""

    def best(pairs):
        return min(pairs, key=lambda pair: (-pairs[pair], pair))

    return learn(ids, count, best=best)


@exercise.mistake
def last_of_equals(ids, count):
    """Of equally frequent pairs the last one won: `>=` replaces a pair by one that is no better.
    Which of equals should stay?"""
    return learn(ids, count, best=lambda pairs: max(reversed(pairs), key=pairs.get))


@exercise.mistake
def rarest(ids, count):
    """The rarest pair won each round. Which one saves the most tokens?"""
    return learn(ids, count, best=lambda pairs: min(pairs, key=pairs.get))


@exercise.mistake
def apart(ids, count):
    """Occurrences that overlap were counted once: a a a a has the pair (a, a) at three places.
    Merging needs them apart, counting does not."""

    def count_pairs(ids):
        firsts = dict.fromkeys(pairwise(ids))
        return Counter({pair: merge(ids, pair, -1).count(-1) for pair in firsts})

    return learn(ids, count, count_pairs=count_pairs)


@exercise.mistake
def one_too_many(ids, count):
    """There is one merge too many: `count` says how many may be learned."""
    return learn(ids, count + 1)


@exercise.mistake
def a_dictionary(ids, count):
    """The right merges, as a dictionary from pair to number. Asked for is a list of pairs: what
    says the place of a pair in it?"""
    return {pair: 256 + i for i, pair in enumerate(train(ids, count))}


@exercise.alternative
def counted_by_hand(ids, count):
    merges = []
    while len(merges) < count:
        counts = {}
        for i in range(len(ids) - 1):
            pair = ids[i], ids[i + 1]
            counts[pair] = counts.get(pair, 0) + 1
        best, most = None, 1
        for pair, times in counts.items():
            if times > most:
                best, most = pair, times
        if best is None:
            break
        ids = merge(ids, best, 256 + len(merges))
        merges.append(best)
    return merges


@exercise.alternative
def by_most_common(ids, count):
    merges = []
    for i in range(count):
        [(best, times)] = Counter(pairwise(ids)).most_common(1)
        if times <= 1:
            return merges
        merges.append(best)
        ids = merge(ids, best, 256 + i)
    return merges
