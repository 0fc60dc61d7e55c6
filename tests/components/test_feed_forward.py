import pytest
import torch

from course_lib.feed_forward import MinimalBlock, feed_forward
from course_lib.masks import leaks_future


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_each_word_goes_through_the_network_alone():
    x, weights = draw(5, 4), (draw(4, 7), draw(7), draw(7, 4), draw(4))
    together = feed_forward(x, *weights)
    for word, alone in zip(together, x, strict=True):
        torch.testing.assert_close(word, feed_forward(alone, *weights))


@pytest.fixture
def block():
    torch.manual_seed(0)
    return MinimalBlock(4, 16).double()


def test_the_minimal_block_never_looks_ahead(block):
    assert leaks_future(block, draw(2, 5, 4)) == []


def test_the_minimal_block_tells_orders_apart_by_its_positions_alone(block):
    x = draw(5, 4)
    swapped = x[[1, 0, 2, 3, 4]]
    assert not torch.allclose(block(x)[-1], block(swapped)[-1])
    block.positions = torch.zeros
    torch.testing.assert_close(block(x)[-1], block(swapped)[-1])


def test_the_minimal_block_is_no_average(block):
    x, y = draw(2, 5, 4)
    middle = block((x + y) / 2)
    assert not torch.allclose(middle, (block(x) + block(y)) / 2, rtol=0.1)
