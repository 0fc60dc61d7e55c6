"""What holds of `course_lib.assistant`."""

import pytest
import torch
from torch import nn

from course_lib.assistant import LowRankLinear, adapt, merge_all, switched_off
from course_lib.multi_head import MultiHeadAttention


def adapted():
    model = nn.Sequential(MultiHeadAttention(8, 2), MultiHeadAttention(8, 2))
    return model, adapt(model, ["w_q", "w_v"], lambda linear: LowRankLinear(linear, 3, 6.0))


def test_what_is_trained_are_the_thin_matrices_alone():
    model, trained = adapted()
    assert len(trained) == 8
    assert sum(x.numel() for x in trained) == 4 * 2 * 3 * 8
    assert all(isinstance(layer.get_submodule("w_q"), LowRankLinear) for layer in model)


def test_merged_layers_are_linear_and_do_the_same():
    model, trained = adapted()
    for parameter in trained:
        nn.init.normal_(parameter)
    x, layer = torch.randn(5, 8), model[0]
    before = layer(x, x, x)
    merge_all(model, alpha=6.0)
    assert type(layer.get_submodule("w_q")) is nn.Linear
    torch.testing.assert_close(layer(x, x, x), before)


def test_a_model_whose_adapter_is_switched_off_is_as_it_was_and_then_as_it_has_become():
    model, trained = adapted()
    layer, x = model[0], torch.randn(5, 8)
    before = layer(x, x, x)
    for parameter in trained:
        nn.init.normal_(parameter)
    after = layer(x, x, x)
    assert not torch.allclose(after, before)
    with switched_off(trained):
        torch.testing.assert_close(layer(x, x, x), before)
    assert torch.equal(layer(x, x, x), after)


def test_a_name_that_no_linear_layer_has_is_refused_and_nothing_is_frozen():
    model = nn.Sequential(nn.Linear(2, 3))
    with pytest.raises(ValueError, match=r"no linear layer is called w_q; there are: 0"):
        adapt(model, ["w_q"], lambda linear: LowRankLinear(linear, 1, 1.0))
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_nothing_to_merge_is_an_error():
    with pytest.raises(ValueError, match="nothing to merge"):
        merge_all(nn.Sequential(nn.Linear(2, 3)), alpha=1.0)
