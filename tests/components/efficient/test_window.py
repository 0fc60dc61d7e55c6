import pytest
import torch

from course_lib.efficient.window import window_attention, window_by_kernel, window_mask
from course_lib.self_attention import scaled_dot_product_attention


@pytest.mark.parametrize("attend", [window_attention, window_by_kernel])
@pytest.mark.parametrize("n", [1, 7, 64, 150])
@pytest.mark.parametrize("width", [0, 1, 2, 9, 64, 129, 1000])
def test_it_is_dense_attention_under_its_mask(attend, n, width, draw, agree):
    q, k, v = draw(2, 3, n, 5), draw(2, 3, n, 5), draw(2, 3, n, 4)
    theirs = scaled_dot_product_attention(q, k, v, window_mask(n, width))
    agree(attend(q, k, v, width), theirs, q, k, v)


def test_the_mask_is_a_band_around_the_diagonal():
    assert window_mask(4, 3).int().tolist() == [
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 1, 1],
        [0, 0, 1, 1],
    ]
    assert window_mask(5, 2).equal(window_mask(5, 3)), "both reach one word"
    assert window_mask(5, 9).all()
    assert window_mask(5, 1).equal(torch.eye(5).bool())


def test_words_outside_the_window_move_nothing(draw):
    q, k, v = draw(200, 5), draw(200, 5), draw(200, 4)
    window_attention(q, k, v, 20)[100].sum().backward()
    for x in (k, v):
        (moved,) = x.grad.any(-1).nonzero(as_tuple=True)
        assert moved.tolist() == list(range(90, 111))
