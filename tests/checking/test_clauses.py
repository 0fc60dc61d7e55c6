"""Each sentence of a statement is tried: answers that break one do not pass, and right ones do."""

import math

import pytest
import torch
from torch.nn import functional as F

from course_lib.answers.answer import InProcess
from course_lib.bleu import matches
from course_lib.checking.catalogue import load
from course_lib.checking.verdict import judge
from course_lib.masks import causal_mask


def moved_only(sign):
    def leaks_future(layer, x):
        before, found = layer(x), set()
        for token in range(1, x.shape[-2]):
            changed = x.clone()
            changed[..., token, :] += sign * (10 + torch.rand(x.shape[-1])).to(x)
            moved = ~torch.isclose(layer(changed), before, equal_nan=True)
            moved = moved.any(-1).reshape(-1, x.shape[-2]).any(0)
            found |= {i for i in range(token) if moved[i]}
        return sorted(found)

    return leaks_future


def packing_by_runs(documents):
    new = documents[..., 1:] != documents[..., :-1]
    run = torch.cat([torch.ones_like(documents[..., :1]), new.long()], -1).cumsum(-1)
    back = causal_mask(documents.shape[-1], device=documents.device)
    return back & (run[..., :, None] == run[..., None, :])


def linear_without_care(q, k, v, causal=False):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    if causal:
        pairs = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(-3)
        return (q.unsqueeze(-1) * pairs).sum(-2) / (q * k.cumsum(-2)).sum(-1, keepdim=True)
    return q @ (k.mT @ v) / (q @ k.sum(-2).unsqueeze(-1))


def by_tokens_with_an_empty_batch(lengths, most):
    out = [[]]
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if (len(out[-1]) + 1) * lengths[i] > most:
            out.append([])
        out[-1].append(i)
    return out


def bleu_of_words(hypotheses, references, most=4):
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    penalty = min(1, math.exp(1 - r / c))
    total = 0.0
    for n in range(1, most + 1):
        counts = [matches(h, w, n) for h, w in zip(hypotheses, references, strict=True)]
        found, there = map(sum, zip(*counts, strict=True))
        if found == 0:
            return 0.0
        total += math.log(found / there)
    return 100 * penalty * math.exp(total / most)


def last_of_equals(x, rotations):
    both = torch.cat([x @ rotations, -(x @ rotations)], -1)
    return both.shape[-1] - 1 - both.flip(-1).argmax(-1)


def top_p_of_sums(logits, p):
    values, order = torch.softmax(logits, -1).sort(dim=-1, descending=True, stable=True)
    kept = values.cumsum(-1) - values <= p - 1e-6
    return logits.masked_fill(~torch.zeros_like(kept).scatter(-1, order, kept), -torch.inf)


WRONG = [
    ("masks/leaks_future", moved_only(1)),
    ("masks/leaks_future", moved_only(-1)),
    ("masks/packing", packing_by_runs),
    ("efficient/linear", linear_without_care),
    ("batching/by_tokens", by_tokens_with_an_empty_batch),
    ("bleu/corpus", bleu_of_words),
    ("efficient/lsh_buckets", last_of_equals),
    ("sampling/top_p", top_p_of_sums),
]


@pytest.mark.parametrize(("exercise_id", "answer"), WRONG)
def test_an_answer_that_breaks_one_sentence_does_not_pass(exercise_id, answer):
    found = judge(load(exercise_id), InProcess(answer))
    assert found.status != "passed"
    # and it breaks no other
    assert 0 < found.cases - found.cases_held <= 2, found.message


def route_by_softmax(x, w, k):
    scores, order = (x @ w).sort(dim=-1, descending=True, stable=True)
    return order[..., :k], torch.softmax(scores[..., :k], -1)


def test_what_no_sentence_forbids_may_be_called():
    found = judge(load("mixture/route"), InProcess(route_by_softmax))
    assert found.status == "passed", found.message
