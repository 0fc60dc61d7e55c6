"""Lesson 17: the loss of the answers' tokens, held against a loop over these tokens."""

import torch
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
