"""What is watched is what the layer does."""

import torch

from course_lib.instruments.recording import record_weights
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.self_attention import scaled_dot_product_attention


def test_the_weights_kept_are_those_that_made_the_output():
    layer, x = MultiHeadAttention(6, 2), torch.randn(3, 4, 6)
    with record_weights(layer) as kept:
        output = layer(x, x, x, causal_mask(4))
        layer(x, x, x)
    first, second = kept
    assert first.shape == (3, 2, 4, 4)
    found = merge_heads(first @ split_heads(layer.w_v(x), 2))
    torch.testing.assert_close(layer.w_o(found), output)
    assert not torch.equal(first, second)
    assert layer.rule is scaled_dot_product_attention
