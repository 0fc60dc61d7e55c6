"""A wrong answer that no bank has is told what the right one would have needed to be so."""

import pytest
import torch

from course_lib.answers.answer import InProcess
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.checking.catalogue import load
from course_lib.checking.verdict import judge


def said_of(exercise_id, answer):
    return judge(load(exercise_id), InProcess(answer)).message


def squashed(q, k, w):
    return torch.tanh(q @ w) @ k.mT


def by_both(q, k, w):
    return q @ w @ (k @ w).mT


def half_renewed(x, h, w_x, w_h, b):
    return 0.25 * torch.tanh(x @ w_x + h @ w_h + b) + 0.75 * h


def over_queries(query, keys, values, temperature):
    one = query.dim() == keys.dim() - 1
    queries = query.unsqueeze(-2) if one else query
    found = weighted_sum(softmax(dot_scores(queries, keys).mT / temperature).mT, values)
    return found.squeeze(-2) if one else found


def with_projections(kind, n, d):
    if kind not in ("attention", "rnn"):
        raise ValueError(kind)
    return 2 * n * n * d + 5 * n * d * d if kind == "attention" else 2 * n * d * d


def real_ones_first(states, mask):
    first = torch.arange(mask.shape[-1]) < mask.sum(-1, keepdim=True)
    total = (states * first.unsqueeze(-1)).sum(-2)
    return total / first.sum(-1, keepdim=True).clamp(min=1)


def always_three(layers, width):
    return 1 + 2 * layers


def mask_of_columns(x, causal=False):
    d = x.shape[-1]
    mask = torch.ones(d, d, dtype=torch.bool).tril() if causal else None
    return weighted_sum(softmax(dot_scores(x, x), mask), x)


def always_single(n, d_model):
    if d_model % 2:
        raise ValueError(d_model)
    angles = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


@pytest.mark.parametrize(
    ("exercise_id", "answer", "said"),
    [
        ("attention/bilinear_scores", squashed, "with a tanh around a part of it"),
        ("attention/bilinear_scores", by_both, "with `k @ w` in the place of `k`"),
        ("rnn/cell", half_renewed, "0.25 times the right one plus 0.75 times `h`"),
        ("attention/soft_lookup", over_queries, "a softmax over the queries"),
        ("efficient/operations", with_projections, "Too large by 5 n d^2"),
        ("encoder/mean_pool", real_ones_first, "True entries of each row of `mask` moved"),
        ("windows/receptive_field", always_three, "with 3 for `width`, whatever it is"),
        ("self_attention/parameter_free", mask_of_columns, "Here 2 is `n` and 3 is `d`."),
        ("positions/sinusoidal", always_single, "Where torch's default float type is float64"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_the_change_that_explains_every_result_is_named(exercise_id, answer, said):
    assert said in said_of(exercise_id, answer)


def test_sizes_are_named_only_where_each_has_one_name():
    def confused(q, k, w):
        return torch.zeros(2, 3) + torch.zeros(4, 5)

    assert "Here " not in said_of("attention/bilinear_scores", confused)
