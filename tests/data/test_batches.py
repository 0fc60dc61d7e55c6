"""Batches of sequences of unequal length."""

import itertools

from course_lib.data.batches import pad, similar_lengths


def test_padding_fills_up_to_the_longest():
    assert pad([[5], [6, 7, 8], [9, 9]], filler=0).tolist() == [[5, 0, 0], [6, 7, 8], [9, 9, 0]]


def test_each_pass_has_every_example_once_in_an_order_that_the_seed_decides():
    words = ["a" * length + str(number) for length in range(1, 8) for number in range(40)]

    def passes(seed):
        drawn = similar_lengths(words, 16, seed, length=len)
        return [list(itertools.islice(drawn, 18)) for _ in range(2)]  # 280 words in 18 batches

    first, second = passes(0)
    assert sorted(itertools.chain(*first)) == sorted(itertools.chain(*second)) == sorted(words)
    assert passes(0) == [first, second]
    assert first != second
    assert passes(1)[0] != first


def test_a_batch_holds_similar_lengths():
    words = ["a" * length for length in range(1, 8) for _ in range(40)]
    drawn = itertools.islice(similar_lengths(words, 16, 0, length=len), 18)
    assert all(len(max(batch)) - len(min(batch)) <= 1 for batch in drawn)
