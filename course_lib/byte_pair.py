"""Byte pairs: a vocabulary learned by merging neighbours that often occur together (lesson 10)."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise


def merge(ids: Sequence[int], pair: tuple[int, int], new: int) -> list[int]:
    """Write one token, `new`, for each occurrence of two neighbours.

    Occurrences are found from the left, and do not overlap; `new` is none of the tokens so far.
    Source: Sennrich et al. 2016, algorithm 1.

    >>> merge([7, 7, 7, 5], (7, 7), 256)
    [256, 7, 5]
    """
    merged, skip = [], False
    for here, following in zip(ids, [*ids[1:], None], strict=False):
        # leave out the second half of a pair, which is written already
        if skip:
            skip = False
        # write the new token for a pair, and remember that its second half is to come
        elif (here, following) == pair:
            merged.append(new)
            skip = True
        # copy any other token
        else:
            merged.append(here)
    return merged


def train(ids: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Learn at most `count` merges, in the order in which they are to be applied.

    Each round merges the most frequent pair of neighbours, overlaps counted; of equally frequent
    ones, the one that comes first in the text. Merge i makes the token 256 + i, since the 256 bytes
    come first. It ends when no pair occurs twice. Source: Sennrich et al. 2016, algorithm 1; on
    bytes as in Radford et al. 2019, section 2.2. Each round reads the whole text.

    >>> train(list(b"abababcab"), 2)
    [(97, 98), (256, 256)]
    """
    if len(ids) < 2:
        return []
    merges = []
    for new in range(256, 256 + count):
        # count all pairs of neighbours
        pairs = Counter(pairwise(ids))
        # find the most frequent one, the first in the text among equals
        best = max(pairs, key=pairs.__getitem__)
        # end when nothing occurs twice
        if pairs[best] < 2:
            break
        # remember it, and merge it everywhere
        merges.append(best)
        ids = merge(ids, best, new)
    return merges


def encode(ids: Sequence[int], merges: Sequence[tuple[int, int]]) -> list[int]:
    """Apply the merges to a text's bytes, in the order in which they were learned.

    >>> encode(list(b"cab"), [(97, 98), (256, 256)])
    [99, 256]
    """
    # begin with the bytes, and merge pair after pair
    found = list(ids)
    for i, pair in enumerate(merges):
        found = merge(found, pair, 256 + i)
    return found


def pieces(merges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Spell every token: the 256 bytes, then what each merge makes."""
    spelled = [bytes([i]) for i in range(256)]
    for left, right in merges:
        spelled.append(spelled[left] + spelled[right])
    return spelled


def decode(ids: Sequence[int], merges: Sequence[tuple[int, int]]) -> str:
    """Return the text of these tokens; bytes that are no text become the mark for a lost character.

    Raises ValueError for a token that no merge has made.
    """
    spelled = pieces(merges)
    if unknown := [token for token in ids if not 0 <= token < len(spelled)]:
        raise ValueError(
            f"token {unknown[0]} is not among the {len(spelled)} that these merges make: were the "
            "tokens made by other merges?"
        )
    return b"".join(spelled[token] for token in ids).decode("utf8", errors="replace")
