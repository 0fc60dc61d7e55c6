import pytest
import torch
from torch.nn import functional as F

from course_lib.efficient.lsh import (
    draw_rotations,
    lsh_attention,
    lsh_attention_in_rounds,
    lsh_buckets,
)
from course_lib.self_attention import scaled_dot_product_attention


def naive_mask(buckets, chunk, causal):
    """Find pair by pair who sees whom, in one round of one sentence."""
    n = len(buckets)
    in_order = sorted(range(n), key=buckets.__getitem__)
    number = {word: place // chunk for place, word in enumerate(in_order)}
    return torch.tensor(
        [
            [
                buckets[i] == buckets[j]
                and number[i] - number[j] in (0, 1)
                and (j < i if causal else j != i)
                for j in range(n)
            ]
            for i in range(n)
        ]
    )


def dense(qk, v, mask):
    nothing = ~mask.any(-1, keepdim=True)
    mask = mask | (nothing & torch.eye(len(mask), dtype=torch.bool))
    return scaled_dot_product_attention(qk, F.normalize(qk, dim=-1), v, mask)


def draw_buckets(*shape, high):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(0))


SIZES = [(1, 1, 1), (12, 4, 3), (12, 3, 2), (12, 12, 1), (24, 4, 6), (24, 2, 24)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "chunk", "buckets"), SIZES)
def test_it_is_dense_attention_under_its_mask(n, chunk, buckets, causal, draw, agree):
    qk, v, own = draw(n, 5), draw(n, 4), draw_buckets(n, high=buckets)
    theirs = dense(qk, v, naive_mask(own.tolist(), chunk, causal))
    agree(lsh_attention(qk, v, own, chunk, causal), theirs, qk, v)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "chunk", "buckets"), SIZES)
def test_rounds_are_dense_attention_under_the_union_of_their_masks(
    n, chunk, buckets, causal, draw, agree
):
    qk, v, own = draw(n, 5), draw(n, 4), draw_buckets(3, n, high=buckets)
    masks = [naive_mask(one, chunk, causal) for one in own.tolist()]
    theirs = dense(qk, v, torch.stack(masks).any(0))
    agree(lsh_attention_in_rounds(qk, v, own, chunk, causal), theirs, qk, v)


def test_rounds_of_a_batch_are_those_of_its_sentences(draw):
    qk, v, own = draw(2, 3, 12, 5), draw(2, 3, 12, 4), draw_buckets(2, 2, 3, 12, high=3)
    found = lsh_attention_in_rounds(qk, v, own, 4)
    for i in range(2):
        for j in range(3):
            alone = lsh_attention_in_rounds(qk[i, j], v[i, j], own[:, i, j], 4)
            torch.testing.assert_close(found[i, j], alone)
    shared = lsh_attention(qk, v, own[0, 0, 0], 4)
    torch.testing.assert_close(shared[1, 2], lsh_attention(qk[1, 2], v[1, 2], own[0, 0, 0], 4))


def test_one_bucket_is_dense_attention_in_which_no_word_looks_at_itself(draw, agree):
    qk, v = draw(2, 9, 5), draw(2, 9, 4)
    others = ~torch.eye(9, dtype=torch.bool)
    theirs = scaled_dot_product_attention(qk, F.normalize(qk, dim=-1), v, others)
    agree(lsh_attention(qk, v, torch.zeros(9).long(), 9), theirs, qk, v)


def test_a_word_alone_in_its_bucket_looks_at_itself(draw):
    qk, v = draw(6, 5), draw(6, 4)
    found = lsh_attention(qk, v, torch.tensor([0, 0, 7, 0, 1, 1]), 6)
    torch.testing.assert_close(found[2], v[2])
    # the two of bucket 1 see each other alone
    torch.testing.assert_close(found[4:], v[[5, 4]])
    torch.testing.assert_close(lsh_attention(qk, v, torch.arange(6), 2), v)


def test_causal_words_see_no_later_ones(draw):
    qk, v, own = draw(24, 5), draw(24, 4), draw_buckets(2, 24, high=2)
    lsh_attention_in_rounds(qk, v, own, 4, causal=True)[10].sum().backward()
    assert qk.grad[11:].eq(0).all()
    assert v.grad[11:].eq(0).all()
    assert v.grad[:11].any()


def test_the_bucket_is_the_direction_pointed_to_most():
    x = torch.tensor([[3.0, 1], [-3, 1], [1, 2], [0, -2]])
    assert lsh_buckets(x, torch.eye(2)).tolist() == [0, 2, 1, 3]


def test_words_that_point_alike_share_a_bucket_more_often(draw):
    x = draw(4000, 8).detach()
    rotations = draw_rotations(8, 6, seed=0).double()

    def shared(y):
        return (lsh_buckets(x, rotations) == lsh_buckets(y, rotations)).double().mean()

    near, far = x + 0.2 * draw(4000, 8).detach(), draw(4000, 8).detach()
    assert shared(5 * x) == 1
    assert shared(near) > 0.7
    assert shared(far) < 0.25
    assert shared(-x) == 0


def test_rotations_come_from_the_seed():
    assert draw_rotations(5, 6, seed=1).shape == (5, 3)
    assert draw_rotations(5, 6, seed=1).equal(draw_rotations(5, 6, seed=1))
    assert not draw_rotations(5, 6, seed=1).equal(draw_rotations(5, 6, seed=2))


@pytest.mark.parametrize("buckets", [0, 1, 7])
def test_an_odd_number_of_buckets_is_refused(buckets):
    with pytest.raises(ValueError, match=f"an even number of them, at least 2, not {buckets}"):
        draw_rotations(4, buckets, seed=0)


def test_a_chunk_that_does_not_divide_the_text_is_refused(draw):
    qk, own = draw(10, 4), torch.zeros(1, 10).long()
    message = "chunks of 4 tokens do not divide n = 10: fill the text up"
    with pytest.raises(ValueError, match=message):
        lsh_attention(qk, qk, own[0], 4)
    with pytest.raises(ValueError, match=message):
        lsh_attention_in_rounds(qk, qk, own, 4)
