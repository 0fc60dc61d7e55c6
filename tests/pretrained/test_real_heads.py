"""What the targets of heads mark."""

import torch

from course_lib.pretrained import real_heads

TOKENS = torch.tensor([7, 5, 7, 6, 7])


def marked(target):
    return [row.nonzero().flatten().tolist() for row in target(TOKENS)]


def test_the_targets_mark_one_earlier_key_at_most():
    assert marked(real_heads.previous) == [[], [0], [1], [2], [3]]
    assert marked(real_heads.first) == [[], [0], [0], [0], [0]]
    assert marked(real_heads.same) == [[], [], [0], [], [2]]
    assert marked(real_heads.followed) == [[], [], [1], [], [3]]
