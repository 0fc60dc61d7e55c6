import pytest
import torch

from course_lib.efficient.tiled import attend, spans, tiled_attention
from course_lib.self_attention import scaled_dot_product_attention


@pytest.mark.parametrize("n", [1, 7, 100])
@pytest.mark.parametrize("block", [1, 3, 64, 200])
def test_it_is_dense_attention(n, block, draw, agree):
    q, k, v = draw(2, 3, n, 5), draw(2, 3, n, 5), draw(2, 3, n, 4)
    agree(tiled_attention(q, k, v, block), scaled_dot_product_attention(q, k, v), q, k, v)


def test_spans_cover_all_words_once():
    assert spans(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert spans(6, 3) == [slice(0, 3), slice(3, 6)]
    assert spans(0, 3) == []


def test_the_order_of_the_tiles_does_not_matter(draw):
    q, k, v = draw(8, 5), draw(10, 5), draw(10, 4)
    tiles = [(rows, [keys], None) for rows in spans(8, 3) for keys in spans(10, 4)]
    for ours, other in zip(attend(q, k, v, tiles), attend(q, k, v, tiles[::-1]), strict=True):
        torch.testing.assert_close(ours, other)


def test_keys_of_several_stretches_are_one_tile(draw, agree):
    q, k, v = draw(2, 4, 5), draw(2, 10, 5), draw(2, 10, 3)
    together = [(slice(0, 4), [slice(6, 9), slice(1, 3)], None)]
    apart = [(slice(0, 4), [keys], None) for keys in (slice(1, 3), slice(6, 9))]
    agree(attend(q, k, v, together)[0], attend(q, k, v, apart)[0], q, k, v)


def test_what_no_tile_covers_gives_zeros_and_finite_gradients(draw):
    q, k, v = draw(2, 6, 5), draw(2, 4, 5), draw(2, 4, 3)
    mask = torch.tensor([[False, False], [True, False]])
    found, log_total = attend(q, k, v, [(slice(0, 2), [slice(1, 3)], mask)])
    seeing = torch.tensor([False, True, False, False, False, False])
    assert found[:, ~seeing].eq(0).all()
    assert log_total[:, ~seeing].isneginf().all()
    torch.testing.assert_close(found[:, 1], v[:, 1])
    (found.square().sum() + log_total[:, seeing].sum()).backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_equal_scores_share_alike_however_large_they_are(draw):
    q, v = torch.full((5, 4), 1e9, requires_grad=True), draw(5, 3, dtype=torch.float32)
    found = tiled_attention(q, q.detach(), v, 2)
    torch.testing.assert_close(found, v.mean(0).expand(5, 3))
    found.sum().backward()
    # each value is one fifth of all five rows
    torch.testing.assert_close(v.grad, torch.ones(5, 3))


def test_memory_is_that_of_one_tile(draw, largest):
    q = draw(2000, 8)
    with largest:
        tiled_attention(q, q, q, 100).sum().backward()
    assert largest.numel == q.numel()
