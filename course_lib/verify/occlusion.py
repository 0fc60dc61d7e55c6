"""Lesson 02: which tokens an output depends on, held against a model where it is known."""

import torch

from course_lib import occlusion
from course_lib.verify.comparison import Inputs, compare


@compare(occlusion.probability_drops, "the differences in a table, where tokens add up")
def _probability_drops(inputs: Inputs):
    places, n, vocab = inputs.sizes(3, low=2)
    table = inputs.normal(places, vocab, n)
    source = torch.arange(places) % vocab

    def probabilities(sources: torch.Tensor) -> torch.Tensor:
        return torch.stack([table[j, sources[:, j]] for j in range(places)]).sum(0)

    ours = occlusion.probability_drops(probabilities, source, torch.arange(vocab))
    there = table[range(places), source]
    # the mean of a place counts the token itself, which is no replacement
    theirs = (there - table.mean(1)) * vocab / (vocab - 1)
    return ours, theirs.mT
