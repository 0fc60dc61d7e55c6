"""Sentences of similar length together, and as many as fit."""

import itertools

from course_lib.checking.exercise import Draw, Exercise
from course_lib.translation import by_tokens

exercise = Exercise(
    reference=by_tokens,
    lesson="11_recipe",
    title="As many tokens as fit",
    minutes=8,
    difficulty=2,
    hints=(
        "Padding fills every sentence of a batch up to the longest one. How many numbers does the "
        "batch then hold, if it has 4 sentences and the longest has 9 tokens?",
        "If you go through the sentences from the shortest to the longest, which sentence of a "
        "batch is always the longest one so far?",
        "You hold a batch and the next sentence. What must you compute to know whether it still "
        "fits, and what do you do if it does not?",
        "You want to sort indices by something that belongs to them. Which argument does `sorted` "
        "have for that?",
    ),
    clauses={
        "Returns the indices": "lengths_returned",
        "sorted by length": "unsorted",
        "in their given order": "order_of_equals_lost",
        "as large as it can be": "never_full",
        "its count times its longest": "padding_not_counted",
    },
)


def lengths(draw: Draw, count: int, longest: int = 12) -> list[int]:
    return draw.integers(1, longest + 1, count).tolist()


@exercise.cases
def cases(draw: Draw):
    yield "three sentences, two batches", ([4, 2, 3], 6)
    yield "several of the same length", ([3, 2, 3, 2, 3, 2], 6)
    yield "many sentences", (lengths(draw, draw.number(12, 25)), draw.number(12, 40))
    yield "very many in large batches", (lengths(draw, 60), draw.number(80, 120))
    yield "each one alone", ([draw.number(7, 12) for _ in range(4)], 12)
    yield "all in one batch", (lengths(draw, 5, longest=4), 40)
    yield "a batch that is exactly full", ([5] * draw.number(5, 9), 15)
    longest = draw.number(3, 9)
    yield "one sentence, as long as a batch", ([longest], longest)
    yield "no sentence", ([], longest)


@exercise.edges
def edges(draw: Draw):
    yield "over a thousand sentences", (lengths(draw, 1200, longest=6), draw.number(12, 20))
    yield "sentences without tokens", ([0, *lengths(draw, 4), 0], draw.number(20, 30))


@exercise.requires("every sentence is in exactly one batch")
def every_index_once(answer, draw: Draw):
    given = lengths(draw, draw.number(15, 40))
    return sorted(i for batch in answer(given, 24) for i in batch) == list(range(len(given)))


@exercise.requires("no batch is too large, padding counted, and none could hold the next sentence")
def full(answer, draw: Draw):
    given = lengths(draw, draw.number(15, 40))
    batches, most = answer(given, 24), 24
    if any(len(batch) * max(given[i] for i in batch) > most for batch in batches):
        return False
    following = itertools.pairwise(batches)
    return len(batches) > 1 and all((len(a) + 1) * given[b[0]] > most for a, b in following)


@exercise.requires("sentences are in order of length, and equally long ones in their given order")
def in_order(answer, draw: Draw):
    given = lengths(draw, 30, longest=4)
    flat = [i for batch in answer(given, 16) for i in batch]
    return flat == sorted(range(30), key=lambda i: (given[i], i))


def cut(order, fits):
    """Fill batches in this order while `fits(batch, index)`."""
    batches = []
    for index in order:
        if not batches or not fits(batches[-1], index):
            batches.append([])
        batches[-1].append(index)
    return batches


def sorted_indices(lengths):
    return sorted(range(len(lengths)), key=lambda i: lengths[i])


@exercise.mistake
def padding_not_counted(lengths, most):
    """The tokens were added up, and padding was not counted. A batch of a sentence of 2 and one of
    9 tokens holds how many numbers, once the short one is filled up?"""

    def fits(batch, index):
        return sum(lengths[i] for i in [*batch, index]) <= most

    return cut(sorted_indices(lengths), fits)


@exercise.mistake
def unsorted(lengths, most):
    """The sentences are in the order in which they came. What do you gain if a batch holds
    sentences of similar length?"""

    def fits(batch, index):
        return (len(batch) + 1) * max(lengths[i] for i in [*batch, index]) <= most

    return cut(range(len(lengths)), fits)


@exercise.mistake
def longest_first(lengths, most):
    """The longest sentences come first. From which end should you go through them?"""

    def fits(batch, index):
        return (len(batch) + 1) * lengths[batch[0]] <= most

    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return cut(order, fits)


@exercise.mistake
def by_the_shortest(lengths, most):
    """The size of a batch was computed from its shortest sentence. To which length are all of them
    filled up?"""

    def fits(batch, index):
        return (len(batch) + 1) * lengths[batch[0]] <= most

    return cut(sorted_indices(lengths), fits)


@exercise.mistake
def one_too_many(lengths, most):
    """The new sentence was not counted, so a batch ends one sentence too late. How many sentences
    will it have once this one is in it?"""

    def fits(batch, index):
        return len(batch) * lengths[index] <= most

    return cut(sorted_indices(lengths), fits)


@exercise.mistake
def never_full(lengths, most):
    """A batch that would be exactly full was closed before. Is `most` still allowed, or already too
    much?"""

    def fits(batch, index):
        return (len(batch) + 1) * lengths[index] < most

    return cut(sorted_indices(lengths), fits)


@exercise.mistake
def sentences_counted(lengths, most):
    """`most` was taken as a number of sentences. It counts tokens, so that short sentences come in
    large batches and long ones in small."""

    def fits(batch, index):
        return len(batch) < most

    return cut(sorted_indices(lengths), fits)


@exercise.mistake
def lengths_returned(lengths, most):
    """These are the lengths of the sentences, not their indices. How would a caller know which
    sentences are meant?"""
    return [[lengths[i] for i in batch] for batch in by_tokens(lengths, most)]


@exercise.mistake
def last_batch_lost(lengths, most):
    """The last batch is missing: it was kept only when the next one began. What happens when no
    sentence is left?"""
    return by_tokens(lengths, most)[:-1]


@exercise.mistake
def order_of_equals_lost(lengths, most):
    """Sentences of the same length have changed their order. A stable sort keeps it: does yours
    compare anything beside the length?"""

    def fits(batch, index):
        return (len(batch) + 1) * lengths[index] <= most

    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], -i))
    return cut(order, fits)


@exercise.mistake(raises=IndexError)
def one_size_for_all(lengths, most):
    """All batches got the size that the longest sentence allows. A batch of short sentences may
    hold more of them: what decides about its size?"""
    order = sorted_indices(lengths)
    size = most // lengths[order[-1]]
    return [order[i : i + size] for i in range(0, len(order), size)]


@exercise.alternative
def batch_after_batch(lengths, most):
    waiting = [i for _, i in sorted(zip(lengths, range(len(lengths)), strict=True))]
    batches = []
    while waiting:
        count = 1
        while count < len(waiting) and (count + 1) * lengths[waiting[count]] <= most:
            count += 1
        batches.append(waiting[:count])
        waiting = waiting[count:]
    return batches
