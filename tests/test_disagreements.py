"""Where the lectures disagree or slip, the law that holds. The lessons show both versions."""

import torch
from torch.nn import functional as F

from course_lib.attention import dot_scores
from course_lib.windows import layers_needed, receptive_field


def prefers_itself(scores):
    own = scores.diagonal(dim1=-2, dim2=-1)
    return (own >= scores.amax(-1) - 1e-9).double().mean()


def test_d09_a_word_attends_most_to_itself_only_without_projections_and_at_equal_length():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, 8, 16, generator=generator, dtype=torch.float64)
    x[:, 0] *= 5  # a long vector draws the others' attention
    unit = F.normalize(x, dim=-1)
    w_q, w_k = torch.randn(2, 16, 16, generator=generator, dtype=torch.float64)
    assert prefers_itself(dot_scores(unit, unit)) == 1
    assert prefers_itself(dot_scores(x, x)) < 1
    assert prefers_itself(dot_scores(unit @ w_q, unit @ w_k)) < 0.5


def test_d14_stacked_windows_reach_further_than_length_over_width():
    n, width = 31, 5
    assert receptive_field(layers_needed(n - 1, width), width) >= n
    assert receptive_field(layers_needed(n - 1, width) - 1, width) < n
    assert receptive_field(n // width, width) < n, "the lectures' n / window layers fall short"
