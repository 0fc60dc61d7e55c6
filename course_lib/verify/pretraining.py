"""Lesson 16: the masked loss against torch's, blanks against a loop, a head token by token."""

import torch
from torch.nn import functional as F

from course_lib import pretraining
from course_lib.verify.comparison import Inputs, compare


@compare(pretraining.masked_loss, "torch's loss of every place, with `ignore_index`")
def _masked_loss(inputs: Inputs):
    d_model, n, vocab = inputs.sizes(3, 2, 9)
    states, table = inputs.normal(n, d_model), inputs.normal(vocab, d_model)
    targets = (torch.arange(n) * 7 + 3) % vocab
    targets[1::3] = -100
    theirs = F.cross_entropy(states @ table.mT, targets, ignore_index=-100)
    return pretraining.masked_loss(states, table, targets), theirs


@compare(pretraining.classify, "a loop over texts that leaves the padding out")
def _classify(inputs: Inputs):
    d_model, n, classes = inputs.sizes(3)
    states, w = inputs.normal(3, n, d_model), inputs.normal(d_model, classes)
    b = inputs.normal(classes)
    lengths = [1 + i % n for i in range(3)]
    mask = torch.arange(n) < torch.tensor(lengths)[:, None]
    rows = [text[:length].mean(0) @ w + b for text, length in zip(states, lengths, strict=True)]
    return pretraining.classify(states, mask, w, b), torch.stack(rows)
