"""What a translation shares with its reference: n-grams, each counted as often as it is in both."""

from collections import Counter

from course_lib.checking.exercise import Draw, Exercise
from course_lib.translation import matches

exercise = Exercise(
    reference=matches,
    lesson="11",
    title="What two sentences share",
    minutes=6,
    difficulty=1,
    hints=(
        "At how many places of a sentence of 5 tokens can a 2-gram begin? And a 5-gram, and a "
        "6-gram?",
        "An n-gram is a piece of a list. What could you turn it into, so that it can be counted in "
        "a Counter, and so that two n-grams are equal only where all their tokens are?",
        "The hypothesis has *the* four times, the reference twice. How many of the four match? "
        "What do two Counters give when you write `&` between them?",
    ),
    clauses={
        "as often as the reference has it, at most": "not_clipped",
    },
)

WORDS = ("a", "b", "ab", "ba", "aa", "c")


def sentence(draw: Draw, count: int, words: int = 3) -> list[str]:
    return [WORDS[i] for i in draw.integers(0, words, count).tolist()]


@exercise.cases
def cases(draw: Draw):
    the = ["the", "the", "the", "cat"]
    yield "one word too often", (the, ["the", "cat", "sleeps"], 1)
    yield "its 2-grams", (the, ["the", "cat", "sleeps"], 2)
    for n in (1, 2, 3):
        long, short = draw.number(9, 14), draw.number(5, 9)
        yield f"{n}-grams of three words", (sentence(draw, long), sentence(draw, short), n)
        yield f"{n}-grams, the reference longer", (sentence(draw, short), sentence(draw, long), n)
    yield "words that are pieces of words", (sentence(draw, 12, 5), sentence(draw, 12, 5), 2)
    both = sentence(draw, 7)
    yield "equal sentences", (both, list(both), 2)
    yield "the same words, turned round", (both, both[::-1], 2)
    yield "exactly one n-gram", (both, list(both), 7)
    yield "a hypothesis of one word, 3-grams", (both[:1], both, 3)
    yield "a reference that is too short", (both, both[:2], 3)
    yield "no word", ([], both, 1)
    yield "a reference of one word", (both, both[:1], 1)
    yield "a reference without words", (both, [], 2)
    yield "capitals", (["The", "cat", "the", "Cat"], ["the", "cat", "sees", "the", "dog"], 1)


@exercise.edges
def edges(draw: Draw):
    both = sentence(draw, 7)
    yield "the same letters, cut otherwise", (["a", "ba", "c"], ["ab", "a", "c"], 2)
    yield "a list and a tuple", (both, tuple(both[:5]), 2)


@exercise.requires("a sentence matches itself in every n-gram")
def itself(answer, draw: Draw):
    text = sentence(draw, 12)
    return all(answer(text, list(text), n) == (13 - n, 13 - n) for n in (1, 2, 5, 12))


@exercise.requires("as many n-grams match if hypothesis and reference are exchanged")
def both_ways(answer, draw: Draw):
    a, b = sentence(draw, 12), sentence(draw, 8)
    return all(
        answer(a, b, n)[0] == answer(b, a, n)[0] and answer(a, b, n)[1] == 13 - n for n in (1, 2)
    )


def grams(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


@exercise.mistake
def capitals_ignored(hypothesis, reference, n):
    """Capitals were made small: *The* and *the* are two words, as different as any."""
    small, others = ([word.lower() for word in words] for words in (hypothesis, reference))
    return matches(small, others, n)


@exercise.mistake
def not_clipped(hypothesis, reference, n):
    """Every n-gram that is somewhere in the reference was counted, as often as the hypothesis says
    it. *the the the the* would be a perfect translation: how often may it match?"""
    known = set(grams(reference, n))
    found = grams(hypothesis, n)
    return sum(gram in known for gram in found), len(found)


@exercise.mistake
def as_sets(hypothesis, reference, n):
    """Each n-gram was counted once, however often it is in both. If *the* is twice in each of the
    two, how many matches are that?"""
    found = grams(hypothesis, n)
    return len(set(found) & set(grams(reference, n))), len(found)


@exercise.mistake
def different_ones_counted(hypothesis, reference, n):
    """The second number counts different n-grams. It should count all n-grams of the hypothesis,
    repeated ones too."""
    return matches(hypothesis, reference, n)[0], len(set(grams(hypothesis, n)))


@exercise.mistake
def sets_in_both(hypothesis, reference, n):
    """Each n-gram was counted once, in both numbers, however often it is there: these are sets. If
    *the* is twice in hypothesis and reference, how many matches are that, and of how many?"""
    found = set(grams(hypothesis, n))
    return len(found & set(grams(reference, n))), len(found)


@exercise.mistake
def negative(hypothesis, reference, n):
    """A hypothesis shorter than n - 1 has a negative number of n-grams here. A corpus adds these
    numbers up, so each such sentence would raise the precision. What is the least number?"""
    return matches(hypothesis, reference, n)[0], len(hypothesis) - n + 1


@exercise.mistake
def of_the_reference(hypothesis, reference, n):
    """The second number counts the reference's n-grams. That would be recall: of whose n-grams does
    precision ask how many match?"""
    return matches(hypothesis, reference, n)[0], len(grams(reference, n))


@exercise.mistake
def tokens_counted(hypothesis, reference, n):
    """The second number counts the tokens of the hypothesis. How many n-grams does a sentence of 5
    tokens have, for n = 2?"""
    return matches(hypothesis, reference, n)[0], len(hypothesis)


@exercise.mistake
def single_tokens(hypothesis, reference, n):
    """Single tokens were compared, whatever n is. Of how many tokens is an n-gram made?"""
    return matches(hypothesis, reference, 1)


@exercise.mistake
def last_one_missing(hypothesis, reference, n):
    """The last n-gram of each sentence is missing. At which place does it begin, in a sentence of 5
    tokens and for n = 2?"""
    found, wanted = Counter(grams(hypothesis, n)[:-1]), Counter(grams(reference, n)[:-1])
    return sum((found & wanted).values()), sum(found.values())


@exercise.mistake
def short_pieces(hypothesis, reference, n):
    """Pieces at the end that are shorter than n were counted as n-grams. Where does the last whole
    one begin?"""
    found, wanted = (
        Counter(tuple(x[i : i + n]) for i in range(len(x))) for x in (hypothesis, reference)
    )
    return sum((found & wanted).values()), sum(found.values())


@exercise.mistake
def without_order(hypothesis, reference, n):
    """The order of the tokens inside an n-gram was lost: *cat the* is not *the cat*. Which type of
    Python keeps an order, and can be counted?"""
    found, wanted = (
        Counter(tuple(sorted(gram)) for gram in grams(x, n)) for x in (hypothesis, reference)
    )
    return sum((found & wanted).values()), sum(found.values())


@exercise.mistake
def glued_together(hypothesis, reference, n):
    """The tokens of an n-gram were glued together: *a* and *ba* then equal *ab* and *a*. How do you
    keep them apart?"""
    found, wanted = (
        Counter("".join(gram) for gram in grams(x, n)) for x in (hypothesis, reference)
    )
    return sum((found & wanted).values()), sum(found.values())


@exercise.mistake
def without_overlap(hypothesis, reference, n):
    """Pieces that follow each other were cut, without overlap. A 2-gram can begin at every token
    but the last."""
    found, wanted = (Counter(grams(x, n)[::n]) for x in (hypothesis, reference))
    return sum((found & wanted).values()), sum(found.values())


@exercise.mistake
def share(hypothesis, reference, n):
    """This is a share. A corpus adds up the matches and the n-grams of all its sentences before it
    divides, so it needs both numbers."""
    matched, there = matches(hypothesis, reference, n)
    return matched / there if there else 0.0


@exercise.mistake
def exchanged(hypothesis, reference, n):
    """The two numbers have changed places. The matches come first, then all n-grams of the
    hypothesis."""
    return matches(hypothesis, reference, n)[::-1]


@exercise.alternative
def struck_out_one_by_one(hypothesis, reference, n):
    left = [list(reference[i : i + n]) for i in range(len(reference) - n + 1)]
    matched = count = 0
    for i in range(len(hypothesis) - n + 1):
        gram = list(hypothesis[i : i + n])
        count += 1
        if gram in left:
            left.remove(gram)
            matched += 1
    return matched, count


@exercise.alternative
def by_dictionaries(hypothesis, reference, n):
    tables = []
    for words in (hypothesis, reference):
        table = {}
        for gram in zip(*(words[i:] for i in range(n)), strict=False):
            table[gram] = table.get(gram, 0) + 1
        tables.append(table)
    matched = sum(min(count, tables[1].get(gram, 0)) for gram, count in tables[0].items())
    return matched, max(0, len(hypothesis) - n + 1)
