import pytest
import torch

from course_lib.efficient.bigbird import (
    bigbird_attention,
    bigbird_by_kernel,
    bigbird_mask,
    neighbours,
)
from course_lib.self_attention import scaled_dot_product_attention


def rows(*arguments, seed=0):
    return [[b for b in row if b >= 0] for row in neighbours(*arguments, seed).tolist()]


def naive_mask(lists, block):
    n = len(lists) * block
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(n):
            mask[i, j] = j // block in lists[i // block]
    return mask


@pytest.mark.parametrize(
    "arguments",
    [(9, 3, 1, 2), (9, 3, 0, 0), (9, 0, 2, 0), (9, 0, 0, 2), (9, 0, 0, 0), (4, 1, 1, 50)],
)
@pytest.mark.parametrize("block", [1, 4])
def test_it_is_dense_attention_under_its_mask(arguments, block, draw, agree):
    listed, n = neighbours(*arguments, seed=0), arguments[0] * block
    q, k, v = draw(2, 3, n, 5), draw(2, 3, n, 5), draw(2, 3, n, 4)
    mask = bigbird_mask(listed, block)
    assert mask.equal(naive_mask(rows(*arguments), block))
    theirs = scaled_dot_product_attention(q, k, v, mask)
    agree(bigbird_by_kernel(q, k, v, listed, block), theirs, q, k, v)
    # where no row lists any block, the plain form is zeros that depend on nothing
    if mask.any():
        theirs = scaled_dot_product_attention(q, k, v, mask)
        agree(bigbird_attention(q, k, v, listed, block), theirs, q, k, v)


def test_long_rows_of_large_blocks_take_several_tiles(draw, agree):
    listed = neighbours(12, 3, 2, 1, seed=0)
    q, k, v = (draw(12 * 96, 4) for _ in range(3))
    theirs = scaled_dot_product_attention(q, k, v, bigbird_mask(listed, 96))
    agree(bigbird_by_kernel(q, k, v, listed, 96), theirs, q, k, v)


def test_a_block_named_twice_counts_once_and_none_may_stand_anywhere(draw):
    q, k, v = (draw(6, 4) for _ in range(3))
    tidy, untidy = torch.tensor([[0, 1], [2, -1], [0, 2]]), torch.tensor([[1, 0], [-1, 2], [2, 0]])
    torch.testing.assert_close(
        bigbird_by_kernel(q, k, v, tidy, 2), bigbird_by_kernel(q, k, v, untidy, 2)
    )
    twice = torch.tensor([[0, 1, 1], [2, 2, -1], [0, 2, 0]])
    torch.testing.assert_close(
        bigbird_by_kernel(q, k, v, tidy, 2), bigbird_by_kernel(q, k, v, twice, 2)
    )


def test_the_window_is_cut_at_the_ends_and_may_be_none():
    assert rows(4, 3, 0, 0) == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3]]
    assert rows(3, 0, 0, 0) == [[], [], []]


def test_global_blocks_see_all_and_are_seen_by_all():
    first, second, *others = rows(7, 1, 2, 0)
    assert sorted(first) == sorted(second) == list(range(7))
    assert all({0, 1, i} == set(row) for i, row in enumerate(others, start=2))
    assert all(sorted(row) == [0, 1, 2] for row in rows(3, 3, 9, 9)), "more than there are"


def test_random_blocks_are_new_ones_and_as_many_as_remain():
    few, many = rows(20, 3, 1, 4), rows(20, 3, 1, 50)
    for block, row in enumerate(few[1:], start=1):
        fixed = {0, *range(block - 1, min(20, block + 2))}
        assert len(row) == len(set(row)) == len(fixed) + 4
        assert fixed < set(row)
    assert all(sorted(row) == list(range(20)) for row in many)


def test_random_blocks_come_from_the_seed_and_each_is_drawn_alike_often():
    assert rows(20, 3, 1, 4) == rows(20, 3, 1, 4)
    assert rows(20, 3, 1, 4) != rows(20, 3, 1, 4, seed=1)
    drawn = torch.tensor([rows(10, 0, 0, 3, seed=seed) for seed in range(200)])
    # 600 in the mean, with a standard deviation of 20
    assert ((drawn.flatten().bincount() - 600).abs() < 100).all()


def test_a_row_that_sees_nothing_gives_zeros_and_finite_gradients(draw):
    q, k, v = (draw(6, 4) for _ in range(3))
    found = bigbird_attention(q, k, v, torch.tensor([[0, 1], [-1, -1], [2, -1]]), 2)
    assert found[2:4].eq(0).all()
    found.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))
    assert q.grad[2:4].eq(0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: neighbours(9, 2, 1, 1, 0), "middle block, so it is odd or 0, not 2"),
        (
            lambda x: bigbird_attention(x, x, x, neighbours(3, 1, 0, 0, 0), 2),
            "blocks of 2 tokens need n = 6 tokens, not 7: fill",
        ),
        (
            lambda x: bigbird_attention(x, x, x, torch.tensor([[0]] * 6 + [[7]]), 1),
            "must be from 0 to 6, or -1 for none, not from 0 to 7: are",
        ),
        (
            lambda x: bigbird_attention(x, x, x, torch.tensor([[-2]] * 7), 1),
            "must be from 0 to 6, or -1 for none, not from -2 to -2",
        ),
    ],
)
def test_blocks_that_do_not_fit_are_refused(make, message, draw):
    with pytest.raises(ValueError, match=message):
        make(draw(7, 4))
