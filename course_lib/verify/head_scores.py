"""Lesson 06: the induction score, held against a loop over queries and keys."""

import torch
from torch import Tensor

from course_lib import head_scores
from course_lib.masks import causal_mask
from course_lib.verify.comparison import Inputs, compare


@compare(head_scores.induction_score, "a loop over queries and keys")
def _induction_score(inputs: Inputs):
    n, heads = inputs.sizes(2, 2)
    tokens = torch.tensor(inputs.sizes(2 * n, 0, n - 1))
    scores = inputs.normal(heads, 2 * n, 2 * n)
    weights = scores.masked_fill(~causal_mask(2 * n), float("-inf")).softmax(-1)
    return head_scores.induction_score(weights, tokens), _looped(weights, tokens.tolist())


def _looped(weights: Tensor, tokens: list[int]) -> Tensor:
    found = []
    for query, token in enumerate(tokens):
        keys = [key for key in range(1, query + 1) if tokens[key - 1] == token]
        if keys:
            found.append(sum(weights[:, query, key] for key in keys))
    return sum(found) / len(found)
