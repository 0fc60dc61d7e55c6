"""The comparisons of `course_lib.assistant`."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import assistant
from course_lib.verify.comparison import Inputs, compare


@compare(assistant.answer_targets, "a loop over the answers' tokens, by torch's loss of each")
def _answer_targets(inputs: Inputs):
    prompts, answers = inputs.sizes(3), inputs.sizes(3)
    n, vocab = max(a + b for a, b in zip(prompts, answers, strict=True)) + 1, 7
    tokens = torch.tensor(inputs.sizes(3 * n, 0, vocab - 1)).reshape(3, n)
    scores = inputs.normal(3, n, vocab)
    asked, lengths = torch.tensor(prompts), torch.tensor(prompts) + torch.tensor(answers)
    targets = assistant.answer_targets(tokens, asked, lengths)
    ours = F.cross_entropy(scores.mT, targets, reduction="sum")
    theirs = torch.zeros((), dtype=torch.float64)
    for row in range(3):
        for place in range(prompts[row], prompts[row] + answers[row]):
            theirs = theirs + F.cross_entropy(scores[row, place - 1], tokens[row, place])
    return ours, theirs


def _parts(inputs: Inputs):
    """Draw a weight of no square shape, a, b and alpha."""
    d_out, d_in, rank, quarters = inputs.sizes(4)
    w, a = inputs.normal(d_out, d_in), inputs.normal(rank, d_in)
    return w, a, inputs.normal(d_out, rank), quarters / 4


@compare(assistant.LowRankLinear, "`F.linear` by the weight with its change written into it")
def _low_rank_linear(inputs: Inputs):
    w, a, b, alpha = _parts(inputs)
    (d_out, d_in), rank = w.shape, len(a)
    x, bias = inputs.normal(*inputs.batch(), d_in), inputs.normal(d_out)
    ours = assistant.LowRankLinear(torch.nn.Linear(d_in, d_out), rank, alpha)
    weights = {"a": a, "b": b, "linear.weight": w, "linear.bias": bias}
    theirs = F.linear(x, w + torch.einsum("or,ri->oi", b, a).mul(alpha).div(rank), bias)
    return functional_call(ours, weights, x), theirs


@compare(assistant.merged, "a loop over the ranks, of outer products")
def _merged(inputs: Inputs):
    w, a, b, alpha = _parts(inputs)
    theirs = w
    for row, column in zip(a, b.mT, strict=True):
        theirs = theirs + torch.outer(column, row) * alpha / len(a)
    return assistant.merged(w, a, b, alpha), theirs


@compare(assistant.answer_log_probs, "a loop over the targets, `torch.distributions.Categorical`")
def _answer_log_probs(inputs: Inputs):
    batch, n, vocab = inputs.sizes(3)
    scores = inputs.normal(batch, n, vocab)
    targets = torch.tensor(inputs.sizes(batch * n, 0, vocab - 1)).reshape(batch, n)
    targets = targets.masked_fill(~inputs.mask(n, batch).mT, -100)
    totals = [row.sum() * 0 for row in scores]
    for i, row in enumerate(targets.tolist()):
        for place, target in enumerate(row):
            if target != -100:
                found = torch.distributions.Categorical(logits=scores[i, place])
                totals[i] = totals[i] + found.log_prob(torch.tensor(target))
    return assistant.answer_log_probs(scores, targets), torch.stack(totals)


@compare(assistant.preference_loss, "`F.cross_entropy` of two classes, the chosen one first")
def _preference_loss(inputs: Inputs):
    batch, beta = inputs.sizes(2)
    chosen, rejected, chosen_before, rejected_before = (inputs.normal(batch) for _ in range(4))
    ratios = torch.stack([chosen - chosen_before, rejected - rejected_before], dim=-1)
    theirs = F.cross_entropy(beta * ratios, torch.zeros(batch, dtype=torch.long))
    ours = assistant.preference_loss(chosen, rejected, chosen_before, rejected_before, float(beta))
    return ours, theirs
