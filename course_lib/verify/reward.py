"""Lesson 18: advantages and losses by loops, preferences by two classes."""

import math

import torch
from torch.nn import functional as F

from course_lib import reward
from course_lib.verify.comparison import Inputs, compare


@compare(reward.group_advantage, "a loop over groups, in Python's numbers")
def _group_advantage(inputs: Inputs):
    groups, size = inputs.sizes(2, 2)
    rewards = torch.tensor(inputs.sizes(groups * size, 0, 3)).double().reshape(groups, size)
    rows = []
    for row in rewards.tolist():
        mean = sum(row) / size
        spread = math.sqrt(sum((r - mean) ** 2 for r in row) / (size - 1))
        rows.append([(r - mean) / (spread + 1e-4) for r in row])
    # an advantage has no gradient: what it is multiplied with does
    gains = inputs.normal(groups, size)
    return gains * reward.group_advantage(rewards), gains * torch.tensor(rows, dtype=torch.float64)


@compare(reward.policy_loss, "a loop over tokens, each case of the clip apart")
def _policy_loss(inputs: Inputs):
    group, n = inputs.sizes(2)
    new, old, advantages = inputs.normal(group, n), inputs.normal(group, n), inputs.normal(group)
    mask = torch.tensor(inputs.sizes(group * n, 0, 1)).reshape(group, n).bool()
    mask[0, 0] = True
    gains = []
    for i, j in mask.nonzero().tolist():
        ratio, advantage = torch.exp(new[i, j] - old[i, j]), advantages[i]
        # a good token is no better above 1.2, and a bad one no worse below 0.8
        if advantage > 0 and ratio > 1.2:
            ratio = 0 * ratio + 1.2
        elif advantage < 0 and ratio < 0.8:
            ratio = 0 * ratio + 0.8
        gains.append(ratio * advantage)
    return reward.policy_loss(new, old, advantages, mask), -sum(gains) / len(gains)


@compare(reward.preference_loss, "`F.binary_cross_entropy_with_logits` of the difference")
def _preference_loss(inputs: Inputs):
    (batch,) = inputs.sizes(1)
    chosen, rejected = inputs.normal(batch), inputs.normal(batch)
    margin = chosen - rejected
    theirs = F.binary_cross_entropy_with_logits(margin, torch.ones_like(margin))
    return reward.preference_loss(chosen, rejected), theirs
