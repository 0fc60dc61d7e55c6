"""BLEU: the geometric mean of four precisions, and a penalty for what is too short."""

import math

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.translation import bleu, matches

exercise = Exercise(
    reference=bleu,
    lesson="11",
    title="BLEU of a corpus",
    minutes=10,
    difficulty=2,
    hints=(
        "`matches` gives two numbers for each sentence and each n. BLEU divides once for each n: "
        "what do you add up before?",
        "A geometric mean of four numbers is the fourth root of their product. How does it look in "
        "logarithms, and what does one precision of 0 do to it?",
        "The penalty compares lengths of the whole corpus. Which of the two is shorter when it "
        "bites, and what should it be when the hypotheses are longer?",
        "Where can a division by 0 hide: in which sentence, of how many words?",
    ),
    clauses={
        "the share of all the corpus's n-grams": "mean_of_sentences",
        "is the brevity penalty": "no_penalty",
        "There is one reference": GIVEN,
        "no smoothing": "smoothed",
        "an order without a match": "zeros_left_out",
        "without an n-gram gives 0": "orders_without_n_grams_left_out",
    },
)

WORDS = "abcdefgh"


def corpus(draw: Draw, sentences: int, share: int = 80, shortest: int = 5) -> tuple[list, list]:
    """Draw references, and hypotheses that have `share` percent of their tokens."""
    hypotheses, references = [], []
    for _ in range(sentences):
        count = draw.number(shortest, 12)
        reference = [WORDS[i] for i in draw.integers(0, 8, count).tolist()]
        kept = draw.integers(0, 100, count).tolist()
        hypothesis = [word if i < share else "x" for word, i in zip(reference, kept, strict=True)]
        references.append(reference)
        hypotheses.append(hypothesis)
    return hypotheses, references


def shortened(hypotheses: list, by: int) -> list:
    return [words[: max(4, len(words) - by)] for words in hypotheses]


@exercise.cases
def cases(draw: Draw):
    cat = "the cat sleeps on the mat".split()
    yield "one sentence, all right", ([cat], [list(cat)])
    yield "one word is wrong", (["the cat sleeps on a mat".split()], [cat])
    hypotheses, references = corpus(draw, draw.number(8, 14))
    yield "several sentences", (hypotheses, references)
    yield "too short", (shortened(hypotheses, 2), references)
    yield "too long", (hypotheses, shortened(references, 3))
    yield (
        "some sentences too short, some too long",
        (
            [*shortened(hypotheses, 3)[:4], *hypotheses[4:]],
            [*references[:4], *shortened(references, 3)[4:]],
        ),
    )
    yield "up to 2-grams", (*corpus(draw, 5, share=70), 2)
    yield "words alone, too short", (shortened(hypotheses, 4), references, 1)
    yield "up to 5-grams", (*corpus(draw, 9, share=90, shortest=6), 5)
    yield "words too often", ([["a"] * 6, list("bcdef")], [list("abacad"), list("bcdef")])
    yield "an order without a match", ([list("abcd"), list("efgx")], [list("abdc"), list("efgh")])
    yield (
        "sentences of two words beside a long one",
        (
            [["a", "b"], *corpus(draw, 3)[1]],
            [["a", "c"], *corpus(draw, 3)[1]],
        ),
    )
    yield "no sentence has four words", ([list("abc"), ["d"]], [list("abcx"), list("de")])
    yield "nothing was written", ([[]], [list("abc")])
    yield "an empty hypothesis beside a whole one", ([[], cat], [list("abc"), list(cat)])


@exercise.edges
def edges(draw: Draw):
    yield "no sentence", ([], [])


@exercise.requires("a corpus that equals its references has 100, and one that shares nothing 0")
def both_ends(answer, draw: Draw):
    _, references = corpus(draw, 4)
    others = [["x"] * len(words) for words in references]
    full = answer([list(words) for words in references], references)
    return math.isclose(full, 100) and answer(others, references) == 0


@exercise.requires("the order of the sentences does not matter")
def in_any_order(answer, draw: Draw):
    hypotheses, references = corpus(draw, 6)
    turned = answer(hypotheses[::-1], references[::-1])
    return math.isclose(answer(hypotheses, references), turned) and turned > 0


@exercise.requires("whole sentences left empty cost what the brevity penalty says")
def penalty(answer, draw: Draw):
    _, references = corpus(draw, 6)
    half = [list(words) if i < 3 else [] for i, words in enumerate(references)]
    r, c = (sum(map(len, side)) for side in (references, half))
    return math.isclose(answer(half, references), 100 * math.exp(1 - r / c))


def precisions(hypotheses, references, most):
    """Return the share of n-grams that match, for each n; None where there are none."""
    shares = []
    for n in range(1, most + 1):
        counts = [matches(h, r, n) for h, r in zip(hypotheses, references, strict=True)]
        there = sum(count for _, count in counts)
        shares.append(sum(found for found, _ in counts) / there if there else None)
    return shares


def brevity(hypotheses, references):
    r, c = sum(map(len, references)), sum(map(len, hypotheses))
    return math.exp(min(0, 1 - r / c)) if c else 0.0


def geometric(shares):
    if not shares or not all(shares):
        return 0.0
    return math.exp(sum(map(math.log, shares)) / len(shares))


@exercise.mistake
def no_penalty(hypotheses, references, most=4):
    """There is no brevity penalty. What would the translation *the* get, for a reference that
    begins with *the*?"""
    return 100 * geometric(precisions(hypotheses, references, most))


@exercise.mistake
def long_is_rewarded(hypotheses, references, most=4):
    """Translations that are too long are rewarded: e^(1 - r/c) is above 1 there. What is the
    largest value that a penalty should have?"""
    score = geometric(precisions(hypotheses, references, most))
    r, c = sum(map(len, references)), sum(map(len, hypotheses))
    return 100 * score * math.exp(1 - r / c) if score else 0.0


@exercise.mistake
def penalty_turned_round(hypotheses, references, most=4):
    """The penalty hits what is too long, and spares what is too short. Precision punishes what is
    too long already: which of r / c and c / r is above 1 for a short translation?"""
    score = geometric(precisions(hypotheses, references, most))
    return 100 * score * brevity(references, hypotheses) if score else 0.0


@exercise.mistake
def penalty_without_exponential(hypotheses, references, most=4):
    """The penalty is r / c or c / r itself, and not e^(1 - r/c). How do the two differ for a
    translation of half the length?"""
    score = geometric(precisions(hypotheses, references, most))
    r, c = sum(map(len, references)), sum(map(len, hypotheses))
    return 100 * score * min(1, c / r) if score else 0.0


@exercise.mistake
def penalty_by_sentence(hypotheses, references, most=4):
    """The penalty was computed for each sentence. In one corpus a short sentence and a long one
    make up for each other: of which lengths are r and c?"""
    score = geometric(precisions(hypotheses, references, most))
    both = zip(hypotheses, references, strict=True)
    penalties = [brevity([h], [r]) for h, r in both]
    return 100 * score * sum(penalties) / len(penalties) if score else 0.0


@exercise.mistake(raises=ZeroDivisionError)
def mean_of_sentences(hypotheses, references, most=4):
    """BLEU was computed for each sentence, and averaged. One sentence without a matching 4-gram is
    0 then, however good the rest of it: what is added up over the corpus before it is divided?"""
    scores = [bleu([h], [r], most) for h, r in zip(hypotheses, references, strict=True)]
    return sum(scores) / len(scores)


@exercise.mistake
def mean_of_precisions(hypotheses, references, most=4):
    """The precisions of the sentences were averaged. A sentence of 30 tokens should count more than
    one of 3: add up the matches and the n-grams first."""
    both = list(zip(hypotheses, references, strict=True))
    shares = []
    for n in range(1, most + 1):
        each = [matches(h, r, n) for h, r in both]
        each = [found / count for found, count in each if count]
        shares.append(sum(each) / len(each) if each else 0.0)
    return 100 * geometric(shares) * brevity(hypotheses, references)


@exercise.mistake(raises=ZeroDivisionError)
def mean_of_all_precisions(hypotheses, references, most=4):
    """The precisions of the sentences were averaged, and a sentence too short for an n-gram counted
    as 0. A sentence of 30 tokens should count more than one of 3: add up the matches and the
    n-grams first."""
    both = list(zip(hypotheses, references, strict=True))
    shares = []
    for n in range(1, most + 1):
        each = [matches(h, r, n) for h, r in both]
        shares.append(sum(found / max(1, count) for found, count in each) / len(each))
    return 100 * geometric(shares) * brevity(hypotheses, references)


@exercise.mistake
def arithmetic_mean_or_nothing(hypotheses, references, most=4):
    """This is the arithmetic mean of the precisions, 0 only where no word matches. Which mean is 0
    as soon as one of its numbers is, and adds up logarithms?"""
    shares = [share or 0.0 for share in precisions(hypotheses, references, most)]
    return 100 * brevity(hypotheses, references) * sum(shares) / most if all(shares) else 0.0


@exercise.mistake
def arithmetic_mean(hypotheses, references, most=4):
    """This is the arithmetic mean of the precisions. The geometric mean is 0 as soon as one of them
    is: which of the two adds up logarithms?"""
    shares = [share or 0.0 for share in precisions(hypotheses, references, most)]
    return 100 * brevity(hypotheses, references) * sum(shares) / most


@exercise.mistake
def no_root(hypotheses, references, most=4):
    """The precisions were multiplied, and no root taken. How many factors has the product, and
    which power makes a mean of it?"""
    shares = [share or 0.0 for share in precisions(hypotheses, references, most)]
    return 100 * math.prod(shares) * brevity(hypotheses, references)


@exercise.mistake
def longest_left_out(hypotheses, references, most=4):
    """The longest n-grams are left out: `range` ends before its second number."""
    return bleu(hypotheses, references, most - 1) if most > 1 else bleu(hypotheses, references, 1)


@exercise.mistake
def longest_alone(hypotheses, references, most=4):
    """Only the longest n-grams were counted. BLEU takes the mean over all orders, from 1 to
    `most`."""
    shares = precisions(hypotheses, references, most)[-1:]
    return 100 * geometric(shares) * brevity(hypotheses, references)


@exercise.mistake
def always_four(hypotheses, references, most=4):
    """Always four orders: `most` changes nothing. Which numbers should n go through?"""
    return bleu(hypotheses, references)


@exercise.mistake
def no_percent(hypotheses, references, most=4):
    """This is a share, from 0 to 1. BLEU is told in percent."""
    return bleu(hypotheses, references, most) / 100


@exercise.mistake
def zeros_left_out(hypotheses, references, most=4):
    """An order that no n-gram matches was left out of the mean, so a poor translation is better off
    than it should be. Without smoothing, what is a product with the factor 0?"""
    shares = [share for share in precisions(hypotheses, references, most) if share]
    return 100 * geometric(shares) * brevity(hypotheses, references)


@exercise.mistake
def orders_without_n_grams_left_out(hypotheses, references, most=4):
    """An order of which the hypotheses have no n-gram was left out of the mean, so texts of three
    words can reach 100. How many of their 4-grams match?"""
    shares = [x for x in precisions(hypotheses, references, most) if x is not None]
    return 100 * geometric(shares) * brevity(hypotheses, references)


@exercise.mistake(raises=(ValueError, ZeroDivisionError))
def logarithm_of_0(hypotheses, references, most=4):
    """An order without a match, or without an n-gram, has no logarithm to add: `math.log(0)` is an
    error. What is a geometric mean of which one number is 0?"""
    total = 0.0
    for n in range(1, most + 1):
        counts = [matches(h, r, n) for h, r in zip(hypotheses, references, strict=True)]
        total += math.log(sum(x for x, _ in counts) / sum(x for _, x in counts)) / most
    return 100 * brevity(hypotheses, references) * math.exp(total)


@exercise.mistake
def smoothed(hypotheses, references, most=4):
    """One was added to each count, which is a way of smoothing. This BLEU has none: an order
    without a match gives 0."""
    shares = []
    for n in range(1, most + 1):
        counts = [matches(h, r, n) for h, r in zip(hypotheses, references, strict=True)]
        found, there = (sum(count[i] for count in counts) for i in (0, 1))
        shares.append((found + (n > 1)) / (there + (n > 1)) if there + (n > 1) else 0.0)
    return 100 * geometric(shares) * brevity(hypotheses, references)


@exercise.mistake
def not_clipped(hypotheses, references, most=4):
    """Matches are not clipped: a word repeated without end matches each time. `matches` counts it
    as often as the reference has it."""
    shares = []
    both = list(zip(hypotheses, references, strict=True))
    for n in range(1, most + 1):
        found = there = 0
        for h, r in both:
            known = {tuple(r[i : i + n]) for i in range(len(r) - n + 1)}
            grams = [tuple(h[i : i + n]) for i in range(len(h) - n + 1)]
            found, there = found + sum(gram in known for gram in grams), there + len(grams)
        shares.append(found / there if there else 0.0)
    return 100 * geometric(shares) * brevity(hypotheses, references)


@exercise.mistake
def recall(hypotheses, references, most=4):
    """The matches were divided by the references' n-grams: that is recall. BLEU has no recall,
    which is why it needs a brevity penalty."""
    shares = precisions(references, hypotheses, most)
    return 100 * geometric(shares) * brevity(hypotheses, references)


@exercise.alternative
def product_and_root(hypotheses, references, most=4):
    product = 1.0
    for n in range(1, most + 1):
        found = there = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            more, of = matches(hypothesis, reference, n)
            found, there = found + more, there + of
        if not found:
            return 0.0
        product *= found / there
    written, wanted = sum(len(h) for h in hypotheses), sum(len(r) for r in references)
    penalty = 1.0 if written > wanted else math.exp(1 - wanted / written)
    return 100 * penalty * product ** (1 / most)
