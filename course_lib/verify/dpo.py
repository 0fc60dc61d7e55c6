"""Lesson 17: log-probabilities of answers against a loop, the loss against two classes."""

import torch
from torch.nn import functional as F

from course_lib import dpo
from course_lib.verify.comparison import Inputs, compare


@compare(dpo.answer_log_probs, "a loop over the targets, `torch.distributions.Categorical`")
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
    return dpo.answer_log_probs(scores, targets), torch.stack(totals)


@compare(dpo.preference_loss, "`F.cross_entropy` of two classes, the chosen one first")
def _preference_loss(inputs: Inputs):
    batch, beta = inputs.sizes(2)
    chosen, rejected, chosen_before, rejected_before = (inputs.normal(batch) for _ in range(4))
    ratios = torch.stack([chosen - chosen_before, rejected - rejected_before], dim=-1)
    theirs = F.cross_entropy(beta * ratios, torch.zeros(batch, dtype=torch.long))
    ours = dpo.preference_loss(chosen, rejected, chosen_before, rejected_before, float(beta))
    return ours, theirs
