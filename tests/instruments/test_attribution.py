"""What is silenced is one head for one query, and nothing else."""

import torch

from course_lib.instruments.attribution import silenced
from course_lib.multi_head import MultiHeadAttention
from course_lib.self_attention import scaled_dot_product_attention


def test_a_silent_head_hands_nothing_to_one_query_and_all_else_stays():
    layer, x = MultiHeadAttention(6, 2), torch.randn(3, 4, 6)
    joined = []
    layer.w_o.register_forward_pre_hook(lambda _, given: joined.append(given[0]))
    layer(x, x, x)
    with silenced(layer, head=1, query=2):
        layer(x, x, x)
    expected = joined[0].clone()
    expected[:, 2, 3:] = 0
    torch.testing.assert_close(joined[1], expected)
    assert layer.rule is scaled_dot_product_attention
