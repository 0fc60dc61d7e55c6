import inspect

import pytest
import torch

from course_lib.add_norm import (
    PostNorm,
    PreNorm,
    batch_norm,
    erase_direction,
    layer_norm,
    rms_norm,
)
from course_lib.masks import padding_mask


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def plain(d):
    return torch.ones(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64)


def test_words_come_out_with_mean_zero_and_variance_one_and_root_mean_square_one():
    x, (gain, bias) = 9 + 5 * draw(2, 3, 8), plain(8)
    normed = layer_norm(x, gain, bias, eps=0.0)
    torch.testing.assert_close(normed.mean(-1), torch.zeros(2, 3).double())
    torch.testing.assert_close(normed.var(-1, correction=0), torch.ones(2, 3).double())
    torch.testing.assert_close((rms_norm(x, gain, 0.0) ** 2).mean(-1), torch.ones(2, 3).double())
    assert (rms_norm(x, gain).mean(-1) > 0.5).all(), "rms_norm leaves the mean"


def test_the_rest_of_the_batch_moves_a_word_in_batch_norm_alone():
    x, (gain, bias) = draw(2, 3, 8), plain(8)
    other = torch.stack([x[0], 5 * x[1] + 1])
    torch.testing.assert_close(layer_norm(x, gain, bias)[0], layer_norm(other, gain, bias)[0])
    assert not torch.allclose(batch_norm(x, gain, bias)[0], batch_norm(other, gain, bias)[0])


def test_padding_moves_no_real_word_and_a_batch_of_padding_alone_stays_finite():
    x, (gain, bias) = draw(2, 3, 8), plain(8)
    mask = padding_mask(torch.tensor([3, 1]), 3).squeeze(-2)
    other = x.masked_fill(~mask.unsqueeze(-1), 100.0)
    ours, again = batch_norm(x, gain, bias, mask), batch_norm(other, gain, bias, mask)
    torch.testing.assert_close(ours[mask], again[mask])
    leaf = x.clone().requires_grad_()
    nothing = batch_norm(leaf, gain, bias, torch.zeros_like(mask))
    nothing.sum().backward()
    assert nothing.isfinite().all()
    assert leaf.grad.isfinite().all()


def test_the_gradient_passes_a_silent_sublayer_unchanged_before_a_norm_and_not_after():
    x = draw(5, 8).requires_grad_()
    for wrapper, unchanged in ((PreNorm, True), (PostNorm, False)):
        layer = wrapper(lambda words, amount: amount * words, 8).double()
        (gradient,) = torch.autograd.grad(layer(x, 0.0)[..., 0].sum(), x)
        assert torch.equal(gradient, torch.eye(8).double()[0].expand(5, 8)) == unchanged


@pytest.mark.parametrize("wrapper", [PostNorm, PreNorm])
def test_the_norm_can_be_replaced(wrapper):
    def no_norm(x, gain, bias):
        return gain * x + bias

    x = draw(5, 8)
    torch.testing.assert_close(wrapper(torch.tanh, 8, norm_layer=no_norm)(x), x + torch.tanh(x))


@pytest.mark.parametrize("length", [1e-200, 1.0, 1e200])
def test_nothing_is_left_along_a_direction_erased_and_erasing_again_changes_nothing(length):
    stream, direction = draw(2, 5, 8), draw(3, 8)[2]
    erased = erase_direction(stream, length * direction)
    torch.testing.assert_close(erased @ direction, torch.zeros(2, 5).double())
    torch.testing.assert_close(erase_direction(erased, direction), erased)


def test_a_direction_without_length_is_refused():
    with pytest.raises(ValueError, match="needs a length, but this one is all zeros: was it ever"):
        erase_direction(draw(5, 8), torch.zeros(8).double())


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 3), r"= \(2, 3\), not torch.float32 of \(2, 3\): does it hold 0 and 1"),
        (
            torch.ones(2, 1, 3).bool(),
            r"= \(2, 3\), not torch.bool of \(2, 1, 3\): .* padding_mask's query axis",
        ),
    ],
)
def test_a_mask_that_is_not_of_words_is_refused(mask, message):
    # as learners call it: without the types that the tests execute
    with pytest.raises(ValueError, match=message):
        inspect.unwrap(batch_norm)(draw(2, 3, 8), *plain(8), mask)
