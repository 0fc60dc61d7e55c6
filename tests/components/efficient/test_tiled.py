import pytest
import torch

from course_lib.efficient.tiled import tiled_attention, tiled_by_kernel
from course_lib.instruments.measuring import saved_bytes
from course_lib.self_attention import scaled_dot_product_attention


@pytest.mark.parametrize("attend", [tiled_attention, tiled_by_kernel])
@pytest.mark.parametrize("n", [1, 7, 100])
@pytest.mark.parametrize("block", [1, 3, 64, 200])
def test_it_is_dense_attention(attend, n, block, draw, agree):
    q, k, v = draw(2, 3, n, 5), draw(2, 3, n, 5), draw(2, 3, n, 4)
    agree(attend(q, k, v, block), scaled_dot_product_attention(q, k, v), q, k, v)


@pytest.mark.parametrize("attend", [tiled_attention, tiled_by_kernel])
def test_equal_scores_share_alike_however_large_they_are(attend, draw):
    q, v = torch.full((5, 4), 1e9, requires_grad=True), draw(5, 3, dtype=torch.float32)
    found = attend(q, q.detach(), v, 2)
    torch.testing.assert_close(found, v.mean(0).expand(5, 3))
    found.sum().backward()
    # each value is one fifth of all five rows
    torch.testing.assert_close(v.grad, torch.ones(5, 3))


def test_memory_is_that_of_one_tile(draw, largest):
    q = draw(2000, 8)
    with largest:
        tiled_by_kernel(q, q, q, 100).sum().backward()
    assert largest.numel == q.numel()


def test_the_kernel_saves_no_tile_and_the_plain_loop_saves_them_all(draw):
    q = draw(400, 8)
    saved = [saved_bytes(lambda f=f: f(q, q, q, 50)) for f in (tiled_by_kernel, tiled_attention)]
    assert saved[0] < 400**2 < saved[1]
