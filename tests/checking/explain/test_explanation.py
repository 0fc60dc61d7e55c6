"""A wrong answer that no bank has is told what differs, truly and within a second."""

import time

import pytest
import torch
from torch import nn

from course_lib.answers.answer import InProcess
from course_lib.answers.source import define, source_of
from course_lib.attention import softmax, weighted_sum
from course_lib.checking.catalogue import load
from course_lib.checking.explain.changed_arguments import SECONDS
from course_lib.checking.verdict import judge
from course_lib.efficient.reversible import halves
from course_lib.masks import causal_mask


def said_of(exercise_id, answer):
    return judge(load(exercise_id), InProcess(answer)).message


def keys_as_values(query, keys, values, temperature):
    one = query.dim() == keys.dim() - 1
    scores = (query.unsqueeze(-2) if one else query) @ keys.mT / temperature
    result = softmax(scores) @ keys
    return result.squeeze(-2) if one else result


def mask_of_columns(x, causal=False):
    d = x.shape[-1]
    mask = torch.ones(d, d, dtype=torch.bool).tril() if causal else None
    return weighted_sum(softmax(x @ x.mT, mask), x)


def half_renewed(x, h, w_x, w_h, b):
    return 0.25 * torch.tanh(x @ w_x + h @ w_h + b) + 0.75 * h


def tripled_targets(tokens, length, stride):
    starts = torch.arange(0, len(tokens) - length, stride)
    places = starts[:, None] + torch.arange(length)
    return tokens[places], 3 * tokens[places]


def one_batch_axis(weights, values):
    return torch.bmm(weights, values)


class HalvesWrittenInto(nn.Module):
    def __init__(self, f, g):
        super().__init__()
        self.f, self.g = f, g

    def inverse(self, y):
        y1, y2 = halves(y)
        y2 -= self.g(y1)
        y1 -= self.f(y2)
        return torch.cat([y1, y2], dim=-1)


class CacheOfAllObjects:
    keys, values = [], []

    def __init__(self, attention):
        self.attention = attention

    def __call__(self, q, k, v):
        self.keys.append(k)
        self.values.append(v)
        k, v = torch.cat(self.keys, dim=-2), torch.cat(self.values, dim=-2)
        return self.attention(q, k, v, causal_mask(q.shape[-2], k.shape[-2]))


@pytest.mark.parametrize(
    ("exercise_id", "answer", "said"),
    [
        ("attention/weighted_sum", one_batch_axis, "cases with exactly one batch dimension are"),
        ("attention/weighted_sum", one_batch_axis, "and none: count axes from the end"),
        ("efficient/reversible", HalvesWrittenInto, "`x[...] =` and names that end in `_`"),
        ("key_value_cache/step", CacheOfAllObjects, "the same call later is not"),
        ("attention/soft_lookup", keys_as_values, "with `keys` in the place of `values`"),
        ("self_attention/parameter_free", mask_of_columns, "Here 2 is `n` and 3 is `d`."),
        ("rnn/cell", half_renewed, "every number is wrong: at d_h 0 it is "),
        ("language_model/examples", tripled_targets, "In “one window” in part 1 of the result"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_what_differs_is_said(exercise_id, answer, said):
    assert said in said_of(exercise_id, answer)


def test_sizes_are_named_only_where_each_has_one_name():
    def confused(q, k, w):
        return torch.zeros(2, 3) + torch.zeros(4, 5)

    assert "Here " not in said_of("attention/bilinear_scores", confused)


def edited(exercise, line, instead):
    """Return the reference as an answer, with another line."""
    module = __import__(exercise.reference.__module__, fromlist=["_"])
    source = source_of(exercise.reference).replace(line, instead)
    return define(source, exercise.name, {k: v for k, v in vars(module).items() if k[0] != "_"})


def test_the_size_of_a_batch_is_not_named_after_another():
    exercise = load("language_model/model")
    answer = edited(exercise, "causal_mask(tokens.shape[-1],", "causal_mask(tokens.shape[0],")
    said = judge(exercise, InProcess(answer)).message
    assert "(2, 2)" in said
    assert "is `layers`" not in said


def test_the_search_for_another_argument_ends_in_time():
    """Explaining takes a second of the processor's time, beside the calls of the answer."""
    exercise = load("transformer/forward")
    answer = edited(
        exercise, "return self.output(states)", "return self.output(states + 0.01 * states.sin())"
    )
    judge(exercise, InProcess(answer))  # the reference is asked once
    start = time.process_time()
    said = judge(exercise, InProcess(answer)).message
    assert said.startswith("Every case gives a wrong result. In “")
    assert time.process_time() - start < SECONDS + 3
