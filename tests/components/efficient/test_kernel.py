import torch

from course_lib.efficient.kernel import attend, spans


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
    output, log_total = attend(q, k, v, [(slice(0, 2), [slice(1, 3)], mask)])
    seeing = torch.tensor([False, True, False, False, False, False])
    assert output[:, ~seeing].eq(0).all()
    assert log_total[:, ~seeing].isneginf().all()
    torch.testing.assert_close(output[:, 1], v[:, 1])
    (output.square().sum() + log_total[:, seeing].sum()).backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))
