"""What it costs that words meet: by attention, and by a recurrent network."""

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.cost import operations

exercise = Exercise(
    reference=operations,
    lesson="13_bigbird",
    title="The paper's count",
    minutes=4,
    difficulty=1,
    hints=(
        "How many multiplications has one dot product of two words of size d? How many dot "
        "products are there, if every word asks every word?",
        "Once the weights are known, each word gets an average of n values of size d. How many "
        "multiplications is that for one word, and how many for all of them?",
        "A recurrent network multiplies a vector of size d by a square matrix, twice at each "
        "word. How many multiplications has one such product?",
    ),
    clauses={
        "scores n^2 pairs and averages n values": "scores_alone",
        "each token and each state": "one_matrix",
        "Counts itself in no time": GIVEN,
    },
)


@exercise.cases
def cases(draw: Draw):
    n, d = draw.number(3, 10), draw.number(11, 20)
    yield "attention, three words", ("attention", 3, 2)
    yield "a recurrent network, three words", ("rnn", 3, 2)
    yield "attention, short", ("attention", n, d)
    yield "a recurrent network, short", ("rnn", n, d)
    yield "attention, one word", ("attention", 1, d)
    yield "a recurrent network, one word", ("rnn", 1, d)
    yield "attention, a book", ("attention", draw.number(10**5, 10**6), 512)
    yield "a recurrent network, a book", ("rnn", draw.number(10**5, 10**6), 512)
    yield "attention, sizes beyond all models", ("attention", 10**9 + 9, 1023)
    yield "a recurrent network, sizes beyond all models", ("rnn", 1023, 10**9 + 7)


@exercise.edges
def edges(draw: Draw):
    d = draw.number(11, 20)
    yield "attention, as many words as numbers in each", ("attention", d, d)
    yield "a recurrent network, as many words as numbers in each", ("rnn", d, d)


@exercise.requires("a text ten times as long costs attention a hundred times, a network ten times")
def longer(answer, draw: Draw):
    n, d = draw.number(2, 10**4), draw.number(2, 10**4)
    return all(
        answer(kind, 10 * n, d) == factor * answer(kind, n, d) > 0
        for kind, factor in (("attention", 100), ("rnn", 10))
    )


@exercise.requires("words ten times as wide cost attention ten times, a network a hundred times")
def wider(answer, draw: Draw):
    n, d = draw.number(2, 10**4), draw.number(2, 10**4)
    return all(
        answer(kind, n, 10 * d) == factor * answer(kind, n, d) > 0
        for kind, factor in (("attention", 10), ("rnn", 100))
    )


@exercise.requires("the two cost the same where a text has as many words as a word has numbers")
def where_they_meet(answer, draw: Draw):
    d = draw.number(5, 10**5)
    texts = ([answer(kind, n, d) for kind in ("attention", "rnn")] for n in (d - 1, d, d + 1))
    short, even, long = texts
    return even[0] == even[1] and short[0] < short[1] and long[0] > long[1]


@exercise.mistake
def in_floats(kind, n, d):
    """The count went through floats, which hold 53 bits of a number: the last digits of a large one
    are lost. Whole numbers times whole numbers are exact."""
    return 2.0 * n**2 * d if kind == "attention" else 2.0 * n * d**2


@exercise.mistake
def scores_alone(kind, n, d):
    """The scores were counted, the averages were not. What is done with the weights, once the
    scores have become some?"""
    return n**2 * d if kind == "attention" else operations(kind, n, d)


@exercise.mistake
def one_matrix(kind, n, d):
    """One matrix was counted at each word of a recurrent network. It has two: which two vectors do
    they meet?"""
    return n * d**2 if kind == "rnn" else operations(kind, n, d)


@exercise.mistake
def half_of_each(kind, n, d):
    """Both are half of what they should be. Attention has two products, scores and averages; a
    recurrent network has two matrices."""
    return operations(kind, n, d) // 2


@exercise.mistake
def exchanged(kind, n, d):
    """The two kinds have changed places. For which of them does a text twice as long cost four
    times as much?"""
    return operations("rnn" if kind == "attention" else "attention", n, d)


@exercise.mistake
def additions_too(kind, n, d):
    """Additions were counted beside multiplications. One multiply-add is one product with the sum
    that takes it in."""
    return 2 * operations(kind, n, d)


@exercise.mistake
def unordered_pairs(kind, n, d):
    """Each pair of words was counted once, however the two are ordered. Does the score of word 1
    asking word 2 spare the one of word 2 asking word 1? And what of a word that asks itself?"""
    return n * (n - 1) * d if kind == "attention" else operations(kind, n, d)


@exercise.mistake
def pairs_alone(kind, n, d):
    """The size of a word plays no part in attention: pairs were counted. How many multiplications
    does the score of one pair take?"""
    return 2 * n**2 if kind == "attention" else operations(kind, n, d)


@exercise.mistake
def projections_too(kind, n, d):
    """The three projections of attention were counted too. They see one word at a time: only the
    mixing of words is asked."""
    return operations(kind, n, d) + (3 * n * d**2 if kind == "attention" else 0)


@exercise.mistake
def four_projections_too(kind, n, d):
    """The four projections, 4 n d^2, were counted as well. Here only the two products between
    tokens are counted: scores, and weights times values."""
    return operations(kind, n, d) + (4 * n * d**2 if kind == "attention" else 0)


@exercise.mistake
def others_alone(kind, n, d):
    """Only pairs of different tokens were counted, n (n - 1). A token looks at itself, too."""
    return 2 * n * (n - 1) * d if kind == "attention" else operations(kind, n, d)


@exercise.alternative
def word_by_word(kind, n, d):
    match kind:
        case "attention":
            one = n * d + n * d
        case "rnn":
            one = d * d + d * d
    return n * one
