"""BLEU: how many n-grams of a translation are also in a reference (lesson 11)."""

import math
import re
from collections import Counter
from collections.abc import Sequence

# the rules of mteval-v13a, by which scores of papers are compared: each puts spaces around marks
MARKS = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def cut(text: str) -> list[str]:
    """Cut a text into words and marks as mteval-v13a does, sacrebleu's default (Post 2018).

    A hyphen belongs to its word, unless a digit is before it; a point or comma between two digits
    belongs to the number.

    >>> cut("Wi-Fi is off, at 2.5 GHz.")
    ['Wi-Fi', 'is', 'off', ',', 'at', '2.5', 'GHz', '.']
    """
    text = f" {text} "
    for sign, spaced in MARKS:
        text = sign.sub(spaced, text)
    return text.split()


def matches(hypothesis: Sequence[str], reference: Sequence[str], n: int) -> tuple[int, int]:
    """Count the n-grams of a hypothesis that its reference has, and all that it has.

    An n-gram that comes several times counts as often as the reference has it, at most: it is
    *clipped*. Source: Papineni et al. 2002, section 2.1.1.

    >>> matches("the the the cat".split(), "the cat sleeps".split(), 1)
    (2, 4)
    """
    # count each n-gram of both
    found, wanted = (
        Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        for words in (hypothesis, reference)
    )
    # let each match as often as it is in both
    clipped = sum((found & wanted).values())
    return clipped, sum(found.values())


def bleu(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], most: int = 4
) -> float:
    """Return the BLEU of a corpus in percent: 100 BP (p_1 p_2 ... p_most)^(1 / most).

    p_n is the share of all the corpus's n-grams that match, by `matches`; BP = min(1, e^(1 - r/c))
    is the brevity penalty, for c words of hypotheses and r of references. There is one reference
    for each hypothesis, and no smoothing: an order without a match or without an n-gram gives 0.
    Source: Papineni et al. 2002, section 2.3. Raises ValueError for unequal numbers of both.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"each hypothesis needs one reference, but there are {len(hypotheses)} and "
            f"{len(references)}: are these the translations of the same sentences?"
        )
    # add up the matches of each order over the corpus, before anything is divided
    logarithms = []
    for n in range(1, most + 1):
        matched = there = 0
        for hypothesis, reference in zip(hypotheses, references, strict=False):
            more, of = matches(hypothesis, reference, n)
            matched, there = matched + more, there + of
        # one order without a match makes the whole product 0
        if matched == 0:
            return 0.0
        logarithms.append(math.log(matched / there))
    # take the geometric mean, and multiply by the brevity penalty
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * math.exp(min(0, 1 - r / c) + sum(logarithms) / most)
