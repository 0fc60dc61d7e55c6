"""Lesson 10: embeddings of n-grams, held against whole numbers of Python's own."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import hashed_ngrams
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights


def _row(gram: list[int], vocab: int, rows: int) -> int:
    """Hash an n-gram without an overflow; fewer tokens than its length are the number -1."""
    code = sum(token * vocab**place for place, token in enumerate(reversed(gram))) if gram else -1
    upper = (code * hashed_ngrams.MULTIPLIER % 2**64) >> 33
    return upper * rows >> 31


@compare(hashed_ngrams.HashedEmbedding, "Python's whole numbers, `F.rms_norm`")
def _hashed_embedding(inputs: Inputs):
    vocab, rows, n, d_model = inputs.sizes(4)
    ours = hashed_ngrams.HashedEmbedding(vocab, d_model, lengths=(2, 3), rows=rows)
    weights = draw_weights(inputs, ours)
    tokens = [token % vocab for token in inputs.sizes(n)]
    x = weights["table"][tokens]
    for i, length in enumerate(ours.lengths):
        grams = [tokens[max(0, end - length) : end] for end in range(1, n + 1)]
        places = [_row(gram if len(gram) == length else [], vocab, rows) for gram in grams]
        x = x + weights[f"tables.{i}"][places]
    theirs = F.rms_norm(x, (d_model,), eps=1e-5)
    return functional_call(ours, weights, torch.tensor(tokens)), theirs
