"""What the targets of heads mark, and what is left of heads that are taken out."""

import torch
from torch.testing import assert_close

from course_lib.grouped_query import grouped_query_attention
from course_lib.pretrained import real_heads

TOKENS = torch.tensor([7, 5, 7, 6, 7])


def marked(target):
    return [row.nonzero().flatten().tolist() for row in target(TOKENS)]


def test_the_targets_mark_one_earlier_key_at_most():
    assert marked(real_heads.previous) == [[], [0], [1], [2], [3]]
    assert marked(real_heads.first) == [[], [0], [0], [0], [0]]
    assert marked(real_heads.same) == [[], [], [0], [], [2]]
    assert marked(real_heads.followed) == [[], [], [1], [], [3]]


def test_a_head_that_is_removed_finds_nothing_and_its_weights_are_kept():
    q, k, v = torch.randn(4, 5, 3), torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    layers = []
    whole = grouped_query_attention(q, k, v)
    watched = real_heads.recording(layers)(grouped_query_attention)
    found = real_heads.silenced([1])(watched)(q, k, v)
    assert_close(found[1], torch.zeros(5, 3))
    assert_close(found[[0, 2, 3]], whole[[0, 2, 3]])
    assert_close(layers[0].sum(-1), torch.ones(4, 5))
