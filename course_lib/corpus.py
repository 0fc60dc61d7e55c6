"""Cleaning a corpus: lines that are sentences, and texts that come twice (lesson 10)."""

import zlib

import torch
from jaxtyping import Int
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
