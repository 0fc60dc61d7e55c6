import inspect

import pytest
import torch

from course_lib.masks import causal_mask, padding_mask
from course_lib.multi_head import (
    MultiHeadAttention,
    merge_heads,
    parameter_count,
    score_variance,
    split_heads,
)
from course_lib.real_models import GroupedQueryAttention


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_merging_undoes_splitting_and_the_first_head_has_the_first_columns():
    x = draw(2, 5, 12)
    split = split_heads(x, 3)
    assert split.shape == (2, 3, 5, 4)
    assert torch.equal(split[:, 0], x[..., :4])
    assert torch.equal(merge_heads(split), x)


@pytest.mark.parametrize("scaled", [False, True])
def test_scores_vary_as_much_as_is_computed(scaled):
    q, k = draw(2, 200_000, 24)
    scores = (q * k).sum(-1) / (24**0.5 if scaled else 1)
    assert scores.var().item() == pytest.approx(score_variance(24, scaled), rel=0.02)
    assert score_variance(24, scaled) == (1 if scaled else 24)


@pytest.mark.parametrize(("d_model", "heads"), [(64, 4), (64, 1), (512, 8)])
def test_before_training_divided_scores_of_normed_inputs_have_variance_a_ninth(d_model, heads):
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(d_model, heads), torch.randn(200, 16, d_model)
    x = torch.nn.functional.layer_norm(x, (d_model,))
    q, k = (split_heads(w(x), heads) for w in (layer.w_q, layer.w_k))
    variance = (q @ k.mT).var().item() / (d_model // heads)
    assert variance == pytest.approx(1 / 9, rel=0.2)


@pytest.mark.parametrize("heads", [1, 2, 6])
def test_parameters_are_as_many_as_the_layer_has_whatever_its_heads(heads):
    layer = MultiHeadAttention(12, heads)
    d_k = 12 // heads
    own = {name: p.numel() for name, p in layer.named_parameters()}
    assert parameter_count(12, heads, d_k, d_k, bias=True) == sum(own.values())
    matrices = sum(size for name, size in own.items() if name.endswith("weight"))
    assert parameter_count(12, heads, d_k, d_k) == matrices
    assert parameter_count(5, 2, 3, 4) == 5 * (2 * 3) * 2 + 5 * (2 * 4) + (2 * 4) * 5


def test_every_head_is_masked_and_a_row_that_sees_nothing_has_finite_gradients():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3).double(), draw(2, 5, 12).requires_grad_()
    mask = padding_mask(torch.tensor([5, 0]), 5) & causal_mask(5)
    found = layer(x, x, x, mask)
    torch.testing.assert_close(found[1], layer.w_o.bias.expand(5, 12))
    found[0, 0].sum().backward()
    assert x.grad.isfinite().all()
    assert x.grad[0, 0].any()
    assert not x.grad[0, 1:].any(), "the first word saw a later one"


def test_the_rule_of_attention_can_be_replaced():
    layer = MultiHeadAttention(12, 3, rule=lambda q, k, v, mask: v).double()
    x = draw(5, 12)
    torch.testing.assert_close(layer(x, x, x), layer.w_o(layer.w_v(x)))


@pytest.mark.parametrize(
    "make", [lambda: MultiHeadAttention(10, 3), lambda: split_heads(draw(4, 10), 3)]
)
def test_heads_that_do_not_divide_a_word_are_refused(make):
    with pytest.raises(ValueError, match="3 heads do not divide d_model = 10: choose a number"):
        make()


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(4, 5), "must be boolean, True where a query may look, not torch.float32: does"),
        (torch.ones(2, 5).bool(), r"= \(2, 4, 5\), not have the shape \(2, 5\): does it lack the"),
        (
            torch.ones(2, 1, 4, 5).bool(),
            r"not have the shape \(2, 1, 4, 5\): .* a head axis already",
        ),
        (torch.ones(5).bool(), r"not have the shape \(5,\): does it lack the query axis"),
    ],
)
@pytest.mark.parametrize("layer", [MultiHeadAttention(6, 3), GroupedQueryAttention(6, 3, 1)])
def test_a_mask_that_does_not_fit_is_refused(layer, mask, message):
    query, key = torch.zeros(2, 4, 6), torch.zeros(2, 5, 6)
    # as learners call it: without the types that the tests execute
    forward = inspect.unwrap(type(layer).forward)
    with pytest.raises(ValueError, match=message):
        forward(layer, query, key, key, mask)
