"""The weights of real heads are kept, and attention stays what it was."""

import torch
from torch.testing import assert_close

from course_lib.masks import causal_mask
from course_lib.pretrained import real_heads
from course_lib.real_models import grouped_query_attention


def test_a_watched_rule_finds_the_same_and_its_weights_sum_up_to_one():
    q, k, v = torch.randn(4, 5, 3), torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    layers = []
    watched = real_heads.recording(layers)(grouped_query_attention)
    mask = causal_mask(5)
    assert_close(watched(q, k, v, mask), grouped_query_attention(q, k, v, mask))
    [weights] = layers
    assert_close(weights.sum(-1), torch.ones(4, 5))
    assert not weights[:, ~mask].any()
