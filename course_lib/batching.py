"""Batches of as many tokens as fit, whatever the lengths of their sentences (lesson 11)."""

from collections.abc import Sequence


def by_tokens(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Put sentences of similar length into batches of at most `most` tokens, padding counted.

    Returns the indices of each batch's sentences: sorted by length, sentences of one length in
    their given order, and each batch as large as it can be while its count times its longest is at
    most `most`. Source: Vaswani et al. 2017, section 5.1 ("batched together by approximate sequence
    length"). Raises ValueError for a sentence longer than `most`.

    >>> by_tokens([5, 2, 9, 2], most=10)
    [[1, 3], [0], [2]]
    """
    longest = max(lengths, default=0)
    if longest > most:
        raise ValueError(
            f"the longest sentence has {longest} tokens, more than the {most} of a whole batch: "
            "leave it out, or allow more"
        )
    batches: list[list[int]] = []
    # go through the sentences from the shortest to the longest
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        # begin a new batch where this sentence would make the last one too large
        if not batches or (len(batches[-1]) + 1) * lengths[index] > most:
            batches.append([])
        # add the sentence, which is now the longest of its batch
        batches[-1].append(index)
    return batches
