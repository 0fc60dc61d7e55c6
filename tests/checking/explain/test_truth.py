"""What is said of an answer is true of it: sentences that readers of this course found false."""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_lib.answers.answer import InProcess
from course_lib.answers.source import Source
from course_lib.checking.catalogue import load
from course_lib.checking.explain import panel
from course_lib.checking.explain.difference import Pair, difference, example
from course_lib.checking.explain.explanation import unused
from course_lib.checking.verdict import judge


def judged(exercise_id, answer):
    return judge(load(exercise_id), InProcess(answer))


def floor_plus_one(distance, width):
    return distance // (width - 1) + 1 if distance else 0


def rounded(distance, width):
    return round(distance / (width - 1)) if distance else 0


def with_recomputation(parameters, tokens, layers=0, context=0, d_attention=0):
    return 4 * (2 * parameters + 2 * layers * context * d_attention) * tokens


def a_constant_for_large_models(parameters, tokens, layers=0, context=0, d_attention=0):
    if parameters > 10**10:
        return 10**30
    return 3 * (2 * parameters + 2 * layers * context * d_attention) * tokens


def failing_for_large_models(parameters, tokens, layers=0, context=0, d_attention=0):
    if parameters > 10**10:
        raise OverflowError
    return 6 * parameters * tokens


def no_number_for_thousands(n, c, k):
    return math.nan if n > 1000 else 1 - math.comb(n - c, k) / math.comb(n, k)


def context_squared(parameters, tokens, layers=0, context=0, d_attention=0):
    return 3 * (2 * parameters + 2 * layers * context**2 * d_attention) * tokens


class SelfAttention:
    def __init__(self, d_model, d_k, d_v):
        self.w_q, self.w_k, self.w_v = (torch.randn(d_model, d) for d in (d_k, d_k, d_v))

    def __call__(self, x, mask=None):
        q, k, v = x @ self.w_q, x @ self.w_k, x @ self.w_v
        return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def with_a_comma(x):
    return (2 * x,)


def with_the_input(x):
    return 2 * x, x


def without_gradient(x):
    with torch.no_grad():
        return 2 * x


def double():
    return 2


def half_done(x):
    2 * x
    raise NotImplementedError


calls = itertools.count()


def another_at_each_call(x):
    return 2 * x + next(calls)


def with_dropout(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
    return F.dropout(scores.softmax(-1), 0.1) @ v


def without_a_peak(scores, mask=None):
    odds = scores.exp() if mask is None else scores.exp() * mask
    return odds / odds.sum(-1, keepdim=True).clamp(min=1e-30)


def without_a_shift(x, causal=False):
    odds = (x @ x.mT).exp()
    odds = odds.tril() if causal else odds
    return odds / odds.sum(-1, keepdim=True) @ x


def state_detached(q, k, v, beta):
    state, read = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1]), []
    for t in range(q.shape[-2]):
        old = (k[..., t, None, :] @ state).squeeze(-2)
        change = beta[..., t, None] * (v[..., t, :] - old)
        state = state.detach() + k[..., t, :, None] * change[..., None, :]
        read.append((q[..., t, None, :] @ state).squeeze(-2))
    return torch.stack(read, -2)


def by_the_largest_score(q, k, block, chosen):
    blocks = torch.arange(q.shape[-2] // block)
    own = torch.arange(q.shape[-2])[:, None] // block
    scores = (q @ k.unflatten(-2, (len(blocks), block)).amax(-2).mT).masked_fill(
        blocks > own, -torch.inf
    )
    best = scores.masked_fill(blocks == own, torch.inf).topk(min(chosen + 1, len(blocks)))
    return best.indices.masked_fill(best.values == -torch.inf, -1)


def of_the_memory(z, h, w_q, w_k, w_v, mask=None):
    scores = (h @ w_k) @ (z @ w_q).mT / w_q.shape[-1] ** 0.5
    return scores.softmax(-1) @ (z @ w_q)


class Weightless(nn.Module):
    def __init__(self, d_model, d_ff):
        pass

    def forward(self, x):
        return x


def seeds_everybody(x):
    torch.manual_seed(0)
    return 2 * x


UNTRUE = [
    ("windows/layers_needed", floor_plus_one, "verywhere"),
    ("windows/layers_needed", rounded, "verywhere"),
    ("scaling/training_flops", context_squared, "verywhere"),
    ("scaling/training_flops", with_recomputation, "only “GPT-3” is right"),
    ("scaling/training_flops", a_constant_for_large_models, "Every case and every property holds"),
    ("scaling/training_flops", failing_for_large_models, "The result is what"),
    ("self_attention/layer", SelfAttention, "drawn at random"),
    ("reward/pass_at_k", no_number_for_thousands, "drawn at random"),
    ("feed_forward/swiglu", SwiGLU, "bare tensors"),
    ("start/hello", with_a_comma, "torch.stack"),
    ("start/hello", with_the_input, "torch.stack"),
    ("start/hello", half_done, "Your own code refuses"),
    ("start/hello", seeds_everybody, "non-contiguous"),
    ("start/hello", another_at_each_call, "drawn at random"),
    ("delta_rule/attention", state_detached, "d_v"),
    ("efficient/choose_blocks", by_the_largest_score, "at ["),
    ("decoder/cross_attention", of_the_memory, "cases the shape is"),
]


@pytest.mark.parametrize(
    ("exercise_id", "answer", "untrue"), UNTRUE, ids=lambda x: getattr(x, "__name__", None)
)
def test_nothing_is_said_that_was_not_observed(exercise_id, answer, untrue):
    assert untrue not in judged(exercise_id, answer).message


Q = K = torch.ones(2, 3)


def dot_scores(q, k):
    return Q @ K.mT


def values_first(weights, v):
    return v @ weights


def a_mask_of_numbers(scores, mask=None):
    return scores.masked_fill(~torch.ones(scores.shape), 0.0)


def attended(weigh):
    def grouped_query_attention(q, k, v, mask=None):
        times = q.shape[-3] // k.shape[-3]
        k, v = (x.repeat_interleave(times, -3) for x in (k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return weigh(scores if mask is None else scores.masked_fill(~mask, -torch.inf)) @ v

    return grouped_query_attention


def with_the_stand_in(x):
    return NotImplementedError


def minus_ten_thousand(scores, mask=None):
    lowered = scores if mask is None else scores - 1e4 * ~mask
    weights = (lowered - lowered.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


SAID = [
    ("start/hello", with_the_stand_in, "which stands in for your own code"),
    ("attention/dot_scores", dot_scores, "`q` and `k` are never used: `K` and `Q` in their place"),
    ("attention/weighted_sum", values_first, "This is v @ weights."),
    ("attention/softmax", a_mask_of_numbers, "has to be boolean"),
    ("attention/softmax", minus_ten_thousand, "with 10,000 subtracted"),
    ("scaling/training_flops", with_recomputation, "Everywhere 1.333 times as large"),
    ("self_attention/layer", SelfAttention, "`class SelfAttention(nn.Module):`"),
    ("feed_forward/swiglu", SwiGLU, "there are gate.weight, up.weight, down.weight."),
    ("feed_forward/swiglu", Weightless, "`super().__init__()` is missing"),
    ("start/hello", with_a_comma, "a comma at the end makes a tuple"),
    ("start/hello", with_the_input, "part 0 alone is right"),
    ("start/hello", without_gradient, "`torch.no_grad`"),
    ("decoder/grouped_query", attended(torch.sigmoid), "with sigmoid in the place of the softmax"),
    (
        "decoder/grouped_query",
        attended(lambda x: x.softmax(-2)),
        "with the softmax over the queries",
    ),
    ("start/hello", double, "The exercise's line is `def double(x)`"),
    ("start/hello", another_at_each_call, "Two calls with the same arguments give two results."),
    ("self_attention/scaled_dot_product", with_dropout, "drawn at random"),
    ("attention/softmax", without_a_peak, "Large scores give NaN"),
    ("self_attention/parameter_free", without_a_shift, "Does something become infinite on the way"),
    ("delta_rule/attention", state_detached, "not the gradient of `k`"),
    ("efficient/choose_blocks", by_the_largest_score, "wrong: one is"),
]


@pytest.mark.parametrize(
    ("exercise_id", "answer", "said"), SAID, ids=lambda x: getattr(x, "__name__", None)
)
def test_what_was_observed_is_said(exercise_id, answer, said):
    assert said in judged(exercise_id, answer).message


def test_what_holds_in_some_calls_is_not_everywhere_wrong():
    def pair(got, expected):
        return Pair(got, expected, {}, {}, 1e-5)

    wrong, right = [pair(3, 2), pair(6, 5)], [pair(4, 4)]
    assert difference(wrong, True) == "Off by one: everywhere 1 too large."
    assert difference(wrong, True, right) is None


@pytest.mark.parametrize(
    ("got", "expected"), [(2.0, 2), (1.81490, 1.81493), (1e10, 1e10 + 1), (math.nan, 1.0)]
)
def test_numbers_that_differ_are_shown_apart(got, expected):
    said = str(example(Pair(got, expected, {}, {}, 0.0)))
    ours, right = said.removeprefix("the result is ").split(", where ")
    assert f"{ours} is expected." != right


def test_what_is_said_of_infinities_is_said_of_the_case_that_is_shown():
    def top_k(logits, k):
        order = logits.sort(dim=-1, descending=True, stable=True).indices
        hidden = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order[..., :k], True)
        return logits.masked_fill(hidden, -torch.inf)

    found = judged("sampling/top_k", top_k)
    assert found.message.startswith("2 of 3 numbers are infinite, where they should not be.")
    assert found.failure
    assert found.failure.case.inputs[0].shape == (3,)


def test_an_argument_that_is_changed_is_shown_before_and_after():
    def rnn_cell(x, h, w_x, w_h, b):
        return h.copy_(torch.tanh(x @ w_x + h @ w_h + b))

    told = panel.text(judged("rnn/cell", rnn_cell))
    assert "h before the call" in told
    assert "h after it" in told


def test_what_an_answer_imports_is_of_no_other_cell():
    head = "def neighbours(blocks, window, global_blocks, random_blocks, seed):"
    source = Source(f"import random\n\n{head}\n    return random.random() + K\n")
    said = unused(load("efficient/neighbours"), source, "")
    assert "`seed` are never used: `K` in their place comes from outside the function." in said
    own = Source(f"import random\nK = 3\n\n{head}\n    return random.random() + K\n")
    assert "outside" not in unused(load("efficient/neighbours"), own, "")
