"""The comparisons of `course_lib.corpus`."""

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

from course_lib import corpus
from course_lib.verify.comparison import Inputs, compare

Table = dict[tuple[int, ...], list[float]]


def _discounts(counts: list[int]) -> list[float]:
    """Return what to take off a count of 0, 1, 2 and 3 or more."""
    n, taken = Counter(counts), [0.0, 0.5, 0.5, 0.5]
    for c in (1, 2, 3):
        if n[c] and n[1] + 2 * n[2]:
            found = c - (c + 1) * n[1] / (n[1] + 2 * n[2]) * n[c + 1] / n[c]
            taken[c] = found if 0 < found < c else 0.5
    return taken


def _kneser_ney(text: list[int], vocab: int, order: int) -> Table:
    """Return the distribution after each context of at most order - 1 tokens."""
    table: Table = {}
    for length in range(1, order + 1):
        grams = [tuple(text[i : i + length]) for i in range(len(text) - length + 1)]
        if length < order:
            # each left neighbour of an n-gram counts once
            longer = {tuple(text[i : i + length + 1]) for i in range(len(text) - length)}
            grams = [gram[1:] for gram in longer]
        counts = Counter(grams)
        taken = _discounts(list(counts.values()))
        for context in {gram[:-1] for gram in counts}:
            mine = {gram[-1]: c for gram, c in counts.items() if gram[:-1] == context}
            total = sum(mine.values())
            reserved = sum(taken[min(c, 3)] for c in mine.values()) / total
            shorter = _known(table, context[1:], vocab) if context else [1 / vocab] * vocab
            table[context] = [
                (mine[w] - taken[min(mine[w], 3)] if w in mine else 0) / total
                + reserved * shorter[w]
                for w in range(vocab)
            ]
    return table


def _known(table: Table, context: tuple[int, ...], vocab: int) -> list[float]:
    """Return what follows the longest end of a context that was seen."""
    while context not in table:
        context = context[1:]
    return table[context]


def _after_each(text: list[int], asked: list[int], vocab: int, order: int) -> Tensor:
    """Return the distribution after each token of `asked`."""
    table = _kneser_ney(text, vocab, order)
    ends = range(1, len(asked) + 1)
    contexts = [tuple(asked[max(0, end - order + 1) : end]) for end in ends]
    rows = [_known(table, context, vocab) for context in contexts]
    return torch.tensor(rows, dtype=torch.float64)


def _exactly(function: Callable[[], Tensor]) -> Tensor:
    """Call a function that makes its own numbers, in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return function()
    finally:
        torch.set_default_dtype(before)


def _draw(inputs: Inputs, size: int, vocab: int) -> list[int]:
    return inputs.sizes(size, 0, vocab - 1)


@compare(corpus.discounts, "`collections.Counter`")
def _estimates(inputs: Inputs):
    counts, x = inputs.sizes(30, 1, 5), inputs.normal(4)
    ours = _exactly(lambda: corpus.discounts(torch.tensor(counts)))
    return x * ours, x * torch.tensor(_discounts(counts), dtype=torch.float64)


@compare(corpus.NGrams, "dictionaries, a context at a time")
def _ngrams(inputs: Inputs):
    (vocab, order), (more,) = inputs.sizes(2, 2, 4), inputs.sizes(1, 1, 40)
    text, asked = (_draw(inputs, order + size, vocab) for size in (more, 5))
    tokens, x = torch.tensor(asked), inputs.normal(len(asked), vocab)
    ours = _exactly(lambda: corpus.NGrams(torch.tensor(text), vocab, order).probabilities(tokens))
    return x * ours, x * _after_each(text, asked, vocab, order)


@compare(corpus.cross_fitted, "dictionaries, a fold at a time")
def _cross_fitted(inputs: Inputs):
    (vocab, order), (size,) = inputs.sizes(2, 2, 4), inputs.sizes(1, 5, 12)
    text = _draw(inputs, 3 * size, vocab)
    ours = _exactly(lambda: corpus.cross_fitted(torch.tensor(text), vocab, order, folds=3))
    parts = []
    for begin in range(0, 3 * size, size):
        others = text[:begin] + text[begin + size :]
        parts.append(_after_each(others, text[: begin + size], vocab, order)[begin:])
    x = inputs.normal(3 * size, vocab)
    return x * ours, x * torch.cat(parts)


def _contexts(text: list[int], length: int) -> list[tuple]:
    """Name the column and the last tokens at each place, if there are so many."""
    found, column = [], 0
    for i, token in enumerate(text):
        column = 0 if token == 0 else column + 1
        found.append((column, tuple(text[i + 1 - length : i + 1]) if i + 1 >= length else None))
    return found


@compare(corpus.line_end_chances, "lists, a place at a time")
def _line_ends(inputs: Inputs):
    (vocab, most), (size,) = inputs.sizes(2, 2, 4), inputs.sizes(1, 20, 60)
    learning, text = _draw(inputs, size, vocab), _draw(inputs, 12, vocab)
    ends = [token == 0 for token in learning[1:]]
    chances = [sum(ends) / len(ends)] * len(text)
    for length in range(most + 1):
        known = _contexts(learning[:-1], length)
        for i, context in enumerate(_contexts(text, length)):
            ended = [end for seen, end in zip(known, ends, strict=True) if seen == context]
            chances[i] = (sum(ended) + 5 * chances[i]) / (len(ended) + 5)
    given = torch.tensor(learning), torch.tensor(text), 0, most
    ours, x = _exactly(lambda: corpus.line_end_chances(*given)), inputs.normal(12)
    return x * ours, x * torch.tensor(chances, dtype=torch.float64)
