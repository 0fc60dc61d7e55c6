"""A new text in tokens: the merges, in the order in which they were learned."""

from itertools import pairwise

import torch

from course_lib.byte_pair import encode, merge, pieces, train
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=encode,
    lesson="10_byte_pairs",
    title="A new text in tokens",
    minutes=3,
    difficulty=1,
    hints=(
        "The second merge may need tokens that the first one makes. So in which order do you "
        "apply them, and to which text each?",
        "How do you know the number of the token that merge i makes, if the list holds pairs "
        "alone?",
    ),
    # `merge` makes a new list, so the caller's may be handed to it
    equivalent=("list(ids) -> ids",),
)


def learned(draw: Draw, count: int, letters: int = 3) -> list:
    """Learn merges from a text at random, some of which merge merged tokens."""
    return train(draw.integers(97, 97 + letters, 400).tolist(), count)


def text(draw: Draw, n: int, letters: int = 3) -> list[int]:
    return draw.integers(97, 97 + letters, n).tolist()


@exercise.cases
def cases(draw: Draw):
    a, b, c, x = (draw.integers(0, 60, 4) + torch.tensor([0, 60, 120, 180])).tolist()
    yield "one merge", ([x, a, b], [(a, b)])
    yield "a merge of a merged token", ([a, b, x, a, b, c], [(a, b), (256, c)])
    # b c is there until a b, which comes first, has taken its b
    yield "two merges want one token", ([x, a, b, c], [(a, b), (b, c)])
    yield "the later merge is further left", ([a, b, c, x], [(b, c), (a, b)])
    yield "a text of three letters", (text(draw, 40), learned(draw, 6))
    yield "many merges", (text(draw, 200), learned(draw, 25))
    yield "letters that no merge knows", (text(draw, 60, 5), learned(draw, 8))
    yield "no merges", (text(draw, 10), [])
    yield "one token", ([x], learned(draw, 4))
    yield "no token", ([], [(a, b)])


@exercise.edges
def edges(draw: Draw):
    a, b, c, x = (draw.integers(0, 60, 4) + torch.tensor([0, 60, 120, 180])).tolist()
    yield "the same two in the other order", ([x, a, b, c], [(b, c), (a, b)])
    yield "a pair that ends in token 0", ([x, 0, a, x], [(x, 0)])
    yield "a tuple of tokens", ((a, b, x, a, b), [(a, b), (256, x)])


@exercise.requires("the tokens, spelled out, are the text")
def spelled_out(answer, draw: Draw):
    ids, merges = text(draw, 80), learned(draw, 12)
    spelled = [[i] for i in range(256)]
    for left, right in merges:
        spelled.append(spelled[left] + spelled[right])
    found = answer(ids, merges)
    return len(found) < len(ids) and [x for token in found for x in spelled[token]] == ids


@exercise.requires("a text of merges learned from itself has no learned pair left")
def nothing_left(answer, draw: Draw):
    ids = text(draw, 80)
    merges = train(ids, 10)
    found = answer(ids, merges)
    return found != ids and not set(pairwise(found)) & set(merges)


@exercise.mistake
def backwards(ids, merges):
    """The merges were applied from the last to the first. The last ones merge tokens that the first
    ones make: what is there for them to merge at the beginning?"""
    for i in reversed(range(len(merges))):
        ids = merge(ids, merges[i], 256 + i)
    return list(ids)


@exercise.mistake
def each_alone(ids, merges):
    """Each merge was applied to the original text, and only the last result is left. What should
    the second merge read?"""
    found = list(ids)
    for i, pair in enumerate(merges):
        found = merge(ids, pair, 256 + i)
    return found


@exercise.mistake
def first_merge_alone(ids, merges):
    """Only the first merge was applied: is there a `return` inside the loop?"""
    return encode(ids, merges[:1])


@exercise.mistake
def last_merge_left_out(ids, merges):
    """The last merge was left out. How many merges are there, and does the loop end?"""
    return encode(ids, merges[:-1])


@exercise.mistake
def numbered_from_0(ids, merges):
    """The new tokens are numbered from 0, which are bytes already. Which number does the first
    merge make?"""
    found = list(ids)
    for i, pair in enumerate(merges):
        found = merge(found, pair, i)
    return found


@exercise.mistake
def numbered_from_255(ids, merges):
    """The first merge made the token 255, which is a byte already. What is the next free number?"""
    found = list(ids)
    for i, pair in enumerate(merges):
        found = merge(found, pair, 255 + i)
    return found


@exercise.mistake
def numbered_behind_those_that_occur(ids, merges):
    """The new tokens are numbered behind the bytes that occur in this text, so another text would
    give the same pair another number. Bytes are 0 to 255 whether they occur or not."""
    found = list(ids)
    for i, pair in enumerate(merges):
        found = merge(found, pair, max(ids, default=255) + 1 + i)
    return found


@exercise.mistake
def numbered_by_those_that_occur(ids, merges):
    """The new tokens are numbered by how many different bytes this text has, so another text would
    give the same pair another number. Bytes are 0 to 255 whether they occur or not."""
    found = list(ids)
    for i, pair in enumerate(merges):
        found = merge(found, pair, len(set(ids)) + i)
    return found


@exercise.mistake
def pieces_of_text(ids, merges):
    """These are pieces of text, and tokens are asked for: numbers. A byte is its own number, and
    merge i makes the number 256 + i."""
    return [pieces(merges)[token].decode("latin-1") for token in encode(ids, merges)]


@exercise.mistake
def pieces_of_bytes(ids, merges):
    """These are bytes objects, and tokens are asked for: numbers. A byte is its own number, and
    merge i makes the number 256 + i."""
    return [pieces(merges)[token] for token in encode(ids, merges)]


@exercise.mistake
def numbered_from_257(ids, merges):
    """The first merge made the token 257. The bytes end with 255: what is the next free number?"""
    found = list(ids)
    for i, pair in enumerate(merges):
        found = merge(found, pair, 257 + i)
    return found


@exercise.mistake
def left_to_right(ids, merges):
    """The text was read once from left to right, and each token joined to the next by whichever
    merge fitted. A merge learned early is applied to the whole text before a later one begins."""
    numbers = {pair: 256 + i for i, pair in enumerate(merges)}
    found = []
    for token in ids:
        found.append(token)
        while tuple(found[-2:]) in numbers:
            found[-2:] = [numbers[tuple(found[-2:])]]
    return found


@exercise.mistake
def result_thrown_away(ids, merges):
    """The text came back as it was: `merge` returns a new list and changes nothing. Under which
    name is its result kept?"""
    for i, pair in enumerate(merges):
        merge(ids, pair, 256 + i)
    return list(ids)


@exercise.mistake
def numbered_by_bytes_that_occur(ids, merges):
    """The new tokens were numbered from 255 plus the number of different bytes in the text. The
    numbers do not depend on the text: all 256 bytes have theirs, and the first merge is 256."""
    found = list(ids)
    for i, pair in enumerate(merges):
        found = merge(found, pair, 255 + len(set(ids)) + i)
    return found


@exercise.alternative
def earliest_pair_first(ids, merges):
    numbers = {pair: 256 + i for i, pair in enumerate(merges)}
    found = list(ids)
    while True:
        there = [pair for pair in pairwise(found) if pair in numbers]
        if not there:
            return found
        best = min(there, key=numbers.__getitem__)
        found = merge(found, best, numbers[best])


@exercise.alternative
def one_merge_and_the_rest(ids, merges):
    found = [*ids]
    for new in range(256, 256 + len(merges)):
        pair = merges[new - 256]
        i = 0
        while i < len(found) - 1:
            if (found[i], found[i + 1]) == pair:
                found[i : i + 2] = [new]
            i += 1
    return found
