"""A corpus: cleaned, and counted (lesson 10)."""

import math
import zlib
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

PRIME = 2**31 - 1  # products of two numbers below it fit into 64 bits


def keep_lines(text: str) -> str:
    r"""Return the lines of a page that C4 keeps, joined by line breaks; "" for a refused page.

    A line is kept, as it is, if it has at least five words, ends in . ! ? or a closing quotation
    mark (" or \u201d), and does not hold "javascript" in any case. A page is refused if it holds
    "lorem ipsum" in any case or a curly bracket {, or if fewer than three lines are kept. Source:
    Raffel et al. 2020, section 2.2, who count sentences, and also drop pages with words from a
    list of bad words, pages that are not English, and all but one of any three sentences that come
    again.
    """
    # refuse placeholder text, and code
    if "lorem ipsum" in text.lower() or "{" in text:
        return ""
    # keep the lines that are long enough, end like a sentence, and ask for no javascript
    kept = [
        line
        for line in text.split("\n")
        if len(line.split()) >= 5
        and line.endswith((".", "!", "?", '"', "\u201d"))
        and "javascript" not in line.lower()
    ]
    # refuse a page with too little left
    return "\n".join(kept) if len(kept) >= 3 else ""


def min_hash(
    shingles: Int[Tensor, " m"], a: Int[Tensor, " h"], b: Int[Tensor, " h"], prime: int
) -> Int[Tensor, " h"]:
    """Describe a set by the least of its members under each of h hashes: min (a s + b) mod prime.

    Two sets agree in a share of their h numbers that estimates their Jaccard similarity, the size
    of the intersection over that of the union. Products of shingles and `a` must fit into 64 bits.
    Source: Broder 1997. Raises ValueError for a set without members.
    """
    if not len(shingles):
        raise ValueError(
            "the least of no shingles is asked for: is the text shorter than one shingle?"
        )
    # give each member its value under each hash
    values = (a.unsqueeze(-1) * shingles + b.unsqueeze(-1)) % prime
    # keep the least under each
    return values.amin(-1)


def shingle(text: str, width: int = 5) -> Int[Tensor, " m"]:
    """Return the numbers, below `PRIME`, of all runs of `width` words of a text, each once.

    Words are compared in lower case. A text with fewer words has one shingle: itself.
    """
    words = text.lower().split()
    runs = [words[i : i + width] for i in range(max(1, len(words) - width + 1))]
    numbers = {zlib.crc32(" ".join(run).encode()) % PRIME for run in runs}
    return torch.tensor(sorted(numbers))


def jaccard(a: Int[Tensor, " m"], b: Int[Tensor, " k"]) -> float:
    """Return the size of the intersection of two sets over that of their union."""
    both = int(torch.isin(a, b).sum())
    return both / (len(a) + len(b) - both)


CHUNK = 2**21  # probabilities that are looked up at once

# different n-grams, each written as one number, in order; and how often each was counted
Grams = tuple[Int[Tensor, " grams"], Int[Tensor, " grams"]]


def encode(tokens: Int[Tensor, "... n"], length: int, vocab: int) -> Int[Tensor, "... n"]:
    """Write the `length` tokens that end at each position as one number, with base `vocab`.

    -1 where fewer tokens than that have come.

    >>> encode(torch.tensor([1, 2, 3]), length=2, vocab=10)
    tensor([-1, 12, 23])
    """
    codes = torch.zeros_like(tokens)
    for back in range(length):
        codes += vocab**back * torch.roll(tokens, back, dims=-1)
    codes[..., : max(0, length - 1)] = -1
    return codes


def occurrences(tokens: Int[Tensor, " n"], length: int, vocab: int) -> Grams:
    """Count how often each n-gram of this length occurs."""
    codes = encode(tokens, length, vocab)[length - 1 :]
    return codes.unique(return_counts=True)


def continuations(tokens: Int[Tensor, " n"], length: int, vocab: int) -> Grams:
    """Count the different tokens that come before each n-gram of this length."""
    longer, _ = occurrences(tokens, length + 1, vocab)
    return (longer % vocab**length).unique(return_counts=True)


def discounts(counts: Int[Tensor, " grams"]) -> Float[Tensor, "4"]:
    """Estimate what to take off a count of 0, 1, 2, and of 3 or more.

    D(c) = c - (c + 1) Y n_(c+1) / n_c with Y = n_1 / (n_1 + 2 n_2), where n_c n-grams have the
    count c. Where there are too few n-grams to tell, it is half a count. Source: Chen & Goodman
    1999, eq. 26.
    """
    n = torch.bincount(counts, minlength=5)[:5].double()
    share = n[1] / (n[1] + 2 * n[2])
    c = torch.arange(1, 4)
    found = c - (c + 1) * share * n[2:5] / n[1:4]
    usable = (found > 0) & (found < c)
    taken = torch.where(usable, found, 0.5)
    return torch.cat([taken.new_zeros(1), taken]).to(torch.get_default_dtype())


class Order:
    """The counts of what followed the contexts of one length: a row is a context."""

    def __init__(self, grams: Grams, vocab: int):
        codes, counts = grams
        taken = discounts(counts)[counts.clamp(max=3)]
        # the n-grams of one context are neighbours: row i has `size[i]` of them from `begin[i]`
        self.contexts, row, self.size = torch.unique_consecutive(
            codes // vocab, return_inverse=True, return_counts=True
        )
        self.begin = self.size.cumsum(0) - self.size
        total = torch.zeros(len(self.size)).index_add(0, row, counts.to(taken))
        self.following = codes % vocab
        self.share = (counts - taken) / total[row]
        self.reserved = torch.zeros(len(self.size)).index_add(0, row, taken) / total

    def refine(
        self, shorter: Float[Tensor, "n vocab"], contexts: Int[Tensor, " n"]
    ) -> Float[Tensor, "n vocab"]:
        """Turn P(w | h') into P(w | h), in place, for each context h that was counted."""
        row = torch.searchsorted(self.contexts, contexts).clamp(max=len(self.contexts) - 1)
        known = (self.contexts[row] == contexts).nonzero().squeeze(-1)
        # look each context up once, however often it stands here
        row, place = row[known].unique(return_inverse=True)
        # list the discounted counts of all n-grams that begin with these contexts
        size = self.size[row]
        of = torch.arange(len(row)).repeat_interleave(size)
        gram = (self.begin[row] - size.cumsum(0) + size)[of] + torch.arange(len(of))
        counted = shorter.new_zeros(len(row), shorter.shape[-1])
        counted[of, self.following[gram]] = self.share[gram]
        # keep of the shorter context's distribution what is reserved for it
        reserved = self.reserved[row].unsqueeze(-1)
        shorter[known] = reserved[place] * shorter[known] + counted[place]
        return shorter


class NGrams:
    """Predict the next token by what followed the last `order` - 1 tokens in a text.

    `count` counts the n-grams that are shorter than `order`: `continuations` is Kneser & Ney's way,
    `occurrences` is plain absolute discounting. Raises ValueError for an `order` whose n-grams
    cannot be numbered in 63 bits, and for a text that is not longer than `order`.
    """

    def __init__(
        self,
        tokens: Int[Tensor, " n"],
        vocab: int,
        order: int = 7,
        count: Callable[[Tensor, int, int], Grams] = continuations,
    ):
        if order < 1 or vocab**order >= 2**63:
            raise ValueError(
                f"n-grams are numbers of 63 bits here, so with a vocabulary of {vocab} they have "
                f"from 1 to {int(63 / math.log2(max(vocab, 2)))} tokens, not {order}"
            )
        if len(tokens) <= order:
            raise ValueError(
                f"to count n-grams of {order} tokens takes a longer text than {len(tokens)} tokens"
            )
        self.vocab = vocab
        shorter = [count(tokens, length, vocab) for length in range(1, order)]
        longest = occurrences(tokens, order, vocab)
        self.orders = [Order(grams, vocab) for grams in (*shorter, longest)]

    def probabilities(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n {self.vocab}"]:
        """Return the distribution of the token after each position, given all up to it."""
        lengths = range(len(self.orders))
        contexts = [encode(tokens, length, self.vocab).flatten() for length in lengths]
        found = torch.full((tokens.numel(), self.vocab), 1 / self.vocab)
        positions = max(1, CHUNK // self.vocab)
        for begin in range(0, len(found), positions):
            part = slice(begin, begin + positions)
            for order, context in zip(self.orders, contexts, strict=True):
                order.refine(found[part], context[part])
        return found.view(*tokens.shape, self.vocab)


def line_end_chances(
    learning: Int[Tensor, " n"], tokens: Int[Tensor, " m"], newline: int, most: int = 3
) -> Float[Tensor, " m"]:
    """Return how probable a line end is after each token, by counts that are told the column.

    A context h is the column, the number of tokens since the last line end, with the last `most`
    tokens. It falls back on h', the column with one token fewer, by a weight of 5 tokens:
    P(end | h) = (c(h, end) + 5 P(end | h')) / (c(h) + 5). The column alone falls back on the share
    of line ends. Source: MacKay & Peto 1995, with a weight that is fixed.
    """
    texts = learning[:-1], tokens
    ends = (learning[1:] == newline).double()
    vocab = int(torch.cat(texts).max()) + 1
    column = torch.cat([_columns(text, newline) for text in texts])
    chance = ends.mean().expand(len(tokens))
    for length in range(most + 1):
        # number the contexts of both texts
        context = torch.cat([encode(text, length, vocab) for text in texts])
        _, number = torch.unique(context * len(column) + column, return_inverse=True)
        seen, asked = number.split([len(ends), len(tokens)])
        # count how often each came, and how often the line ended there
        count = torch.bincount(seen, minlength=len(number))
        ended = torch.bincount(seen, ends, minlength=len(number))
        chance = (ended[asked] + 5 * chance) / (count[asked] + 5)
    return chance.to(torch.get_default_dtype())


def _columns(tokens: Int[Tensor, " n"], newline: int) -> Int[Tensor, " n"]:
    """Return how many tokens have come since the last line end."""
    place = torch.arange(len(tokens))
    return place - torch.where(tokens == newline, place, -1).cummax(0).values


def cross_fitted(
    tokens: Int[Tensor, " n"], vocab: int, order: int = 7, folds: int = 10
) -> Float[Tensor, "n vocab"]:
    """Predict each fold of a text by the counts of its other folds: row i is for token i + 1.

    Counts know their own text too well. A network that is to learn when counts are right needs
    counts that have not seen the answer. Source: Wolpert 1992 ("Stacked Generalization"). Raises
    ValueError for fewer than two folds.
    """
    if folds < 2:
        raise ValueError(
            f"one fold is predicted by the others, so there are at least 2, not {folds}"
        )
    found = []
    for fold in torch.arange(len(tokens)).chunk(folds):
        begin, end = int(fold[0]), int(fold[-1]) + 1
        others = torch.cat([tokens[:begin], tokens[end:]])
        # begin a little earlier, so that the first tokens have their contexts too
        early = max(0, begin - order)
        found.append(NGrams(others, vocab, order).probabilities(tokens[early:end])[begin - early :])
    return torch.cat(found)
