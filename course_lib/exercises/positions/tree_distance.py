"""How many edges of a dependency tree lie between two words."""

from itertools import product

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.positions import tree_distance

exercise = Exercise(
    reference=tree_distance,
    lesson="04_trees",
    title="Near in the tree",
    minutes=25,
    difficulty=3,
    hints=(
        "Write down, for two words of a small tree, each word and all words above it. Which words "
        "stand in both lists, and what have the others to do with the path?",
        "From any word of a tree with n words, how many steps up can there be at most before the "
        "root? What is to happen to a token that has reached it sooner?",
        "Let `above[i, a]` say whether word a is word i or above it. Words i and j are then two "
        "rows of yes and no: which operation counts where two rows differ?",
    ),
    clauses={
        "`heads[i]` is the token": GIVEN,
        "as many edges as there are tokens in only one": "words_shared",
    },
    # an axis that broadcasting adds, and a count that compares as it is
    equivalent=("above.unsqueeze(0) -> above",),
)


@exercise.cases
def cases(draw: Draw):
    yield "two words", (torch.tensor([1, -1]),)
    yield "one word", (torch.tensor([-1]),)
    yield "a chain", (torch.tensor([-1, 0, 1, 2, 3, 4, 5]),)
    yield "a star", (torch.tensor([2, 2, -1, 2, 2]),)
    yield "a sentence", (torch.tensor([1, 3, 1, -1, 3]),)
    yield "two deep branches", (torch.tensor([-1, 0, 1, 2, 0, 4, 5]),)
    yield "a tree at random", (at_random(draw, 9),)


@exercise.edges
def edges(draw: Draw):
    yield "a long chain", (torch.arange(-1, 104),)


def at_random(draw: Draw, n: int):
    """Draw a tree whose words stand in any order."""
    order = draw.normal(n).argsort()
    heads = torch.full((n,), -1)
    for i in range(1, n):
        heads[order[i]] = order[draw.integers(0, i)]
    return heads


@exercise.requires("a word is one edge away from its head")
def one_edge(answer, draw: Draw):
    heads = at_random(draw, 8)
    distance = answer(heads)
    edges = torch.tensor([distance[i, head] for i, head in enumerate(heads) if head >= 0])
    return (edges == 1).all() and distance.max() > 1


@exercise.requires("the way there is as long as the way back")
def symmetric(answer, draw: Draw):
    distance = answer(at_random(draw, 7))
    return torch.equal(distance, distance.mT) and (distance.diagonal() == 0).all()


@exercise.requires("the order of the words plays no part, only who depends on whom")
def order_plays_no_part(answer, draw: Draw):
    heads, order = at_random(draw, 7), draw.normal(7).argsort()
    place = order.argsort()
    moved = torch.tensor([-1 if heads[i] < 0 else place[heads[i]] for i in order])
    return torch.equal(answer(moved), answer(heads)[order][:, order])


def climbed(heads):
    """List each token with all tokens above it."""
    heads = heads.tolist()
    lists = []
    for word in range(len(heads)):
        lists.append([])
        # what is no tree may have a cycle
        for _ in heads:
            if word != -1:
                lists[-1].append(word)
                word = heads[word]
    return lists


def compared(heads, measure):
    """Measure each two tokens by the lists of tokens above them."""
    lists = climbed(heads)
    rows = [[measure(i, j, a, b) for j, b in enumerate(lists)] for i, a in enumerate(lists)]
    return torch.tensor(rows, dtype=torch.long)


@exercise.mistake
def difference_of_depths(heads):
    """This is the difference of the two depths. Two words that hang on one head are equally deep:
    is there no way between them?"""
    return compared(heads, lambda i, j, a, b: abs(len(a) - len(b)))


@exercise.mistake
def over_the_root(heads):
    """The way was led over the root, whoever the two words are. If one stands above the other, or
    both below a third, where can the way turn back sooner?"""
    return compared(heads, lambda i, j, a, b: len(a) + len(b) - 2 if i != j else 0)


@exercise.mistake
def upwards_only(heads):
    """Only ways upwards were counted: between a word and one that is not above it stands 0. A path
    may climb and come down again: what do the words above i and above j share?"""
    return compared(heads, lambda i, j, a, b: a.index(j) if j in a else 0)


@exercise.mistake
def one_line_only(heads):
    """Right where one word stands above the other, and 0 for all others. Two words on different
    branches have a path too: where do the ways upwards meet?"""
    return compared(heads, lambda i, j, a, b: abs(len(a) - len(b)) if j in a or i in b else 0)


@exercise.mistake
def distance_in_the_sentence(heads):
    """These are the distances in the sentence, |i - j|. The heads play no part: which words are far
    apart in the sentence, and near in the tree?"""
    return compared(heads, lambda i, j, a, b: abs(i - j))


@exercise.mistake
def words_on_the_path(heads):
    """The words on the path were counted, both ends included. How many edges are there between a
    word and itself?"""
    return tree_distance(heads) + 1


@exercise.mistake
def all_words_above(heads):
    """All words above the two were counted, also those that both have in common. How far does the
    path climb, when it reaches the first word they share?"""
    return compared(heads, lambda i, j, a, b: len(set(a) | set(b)))


@exercise.mistake
def words_shared(heads):
    """The words that both have above them were counted, which is how much of the way upwards they
    share. Is the path made of what they share, or of the rest?"""
    return compared(heads, lambda i, j, a, b: len(set(a) & set(b)))


@exercise.mistake
def neighbours_only(heads):
    """Here is who is joined by an edge, 1 or 0. What of words whose path has two edges, or
    three?"""
    return tree_distance(heads).eq(1).long()


@exercise.mistake
def signed(heads):
    """Distances to words further left are negative. The docstring counts edges, and there are never
    fewer than none."""
    words = torch.arange(len(heads))
    return tree_distance(heads) * torch.sign(words - words.unsqueeze(-1))


@exercise.mistake
def as_floats(heads):
    """The right numbers, but as floats: 3.0 is not a count. If infinity stood for `no way yet`,
    what is to be done once all ways are known?"""
    return tree_distance(heads).float()


@exercise.mistake
def two_steps_up(heads):
    """The way up was cut off after a few heads, so tokens far below the root have lost some that
    are above them. How many steps up can a token need, among n?"""
    return compared(heads, lambda i, j, a, b: len(set(a[:3]) ^ set(b[:3])))


@exercise.mistake
def three_steps_up(heads):
    """The way up was cut off after a few heads, so tokens far below the root have lost some that
    are above them. How many steps up can a token need, among n?"""
    return compared(heads, lambda i, j, a, b: len(set(a[:4]) ^ set(b[:4])))


@exercise.mistake
def one_or_two(heads):
    """A token and its head are 1 apart, and all other tokens 2. Two edges lead to the head's head:
    how many lead on from there?"""
    return tree_distance(heads).clamp(max=2)


@exercise.alternative
def by_the_words_above(heads):
    above = [set(words) for words in climbed(heads)]
    found = heads.new_zeros(len(heads), len(heads))
    for i, j in product(range(len(heads)), repeat=2):
        found[i, j] = len(above[i] ^ above[j])
    return found


@exercise.alternative
def by_ever_shorter_ways(heads):
    n = len(heads)
    words = torch.arange(n)
    distance = torch.where(words == words.unsqueeze(-1), 0, n)
    low = words[heads >= 0]
    distance[low, heads[low]] = distance[heads[low], low] = 1
    for via in range(n):
        distance = torch.minimum(distance, distance[:, via : via + 1] + distance[via])
    return distance
