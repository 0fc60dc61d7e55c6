"""Lesson 10: what is drawn from, held against probabilities that are cut and normalised anew."""

import torch

from course_lib import sampling
from course_lib.verify.comparison import Inputs, compare


def _logits(inputs: Inputs):
    return inputs.normal(*inputs.batch(), *inputs.sizes(1, 2))


@compare(sampling.temper, "probabilities to the power 1 / temperature, normalised anew")
def _temper(inputs: Inputs):
    logits, temperature = _logits(inputs), inputs.sizes(1)[0] / 2
    powers = torch.softmax(logits, -1) ** (1 / temperature)
    ours = torch.softmax(sampling.temper(logits, temperature), -1)
    return ours, powers / powers.sum(-1, keepdim=True)


@compare(sampling.top_k, "`torch.topk`'s probabilities, normalised anew")
def _top_k(inputs: Inputs):
    logits, [k] = _logits(inputs), inputs.sizes(1)
    shares = torch.softmax(logits, -1)
    likeliest = shares.topk(min(k, logits.shape[-1]))
    kept = torch.zeros_like(shares).scatter(-1, likeliest.indices, likeliest.values)
    ours = torch.softmax(sampling.top_k(logits, k), -1)
    return ours, kept / kept.sum(-1, keepdim=True)


@compare(sampling.top_p, "a loop that takes the likeliest until they sum to p")
def _top_p(inputs: Inputs):
    logits, p = _logits(inputs), inputs.sizes(1)[0] / 6.5
    rows = []
    for shares in torch.softmax(logits, -1).reshape(-1, logits.shape[-1]):
        kept = torch.zeros_like(shares)
        while (shares * kept).sum() < p:
            kept[(shares - 2 * kept).argmax()] = 1
        taken = shares * kept
        rows.append(taken / taken.sum())
    ours = torch.softmax(sampling.top_p(logits, p), -1)
    return ours, torch.stack(rows).view_as(logits)
