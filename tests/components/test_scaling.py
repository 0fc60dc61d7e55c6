"""What lesson 12's formulas promise beside their checks."""

from inspect import unwrap

import pytest
import torch

from course_lib.instruments.measuring import saved_bytes
from course_lib.language_model import LanguageModel, cross_entropy
from course_lib.scaling import choose_size, training_memory


def test_one_budget_says_nothing_of_the_next():
    with pytest.raises(ValueError, match="two points"):
        unwrap(choose_size)([(1e10, n, loss) for n, loss in ((1, 3), (2, 2), (4, 3))], 4e10)


def test_the_bill_of_memory_is_what_autograd_keeps():
    layers, d, heads, context, sequences, vocab = 4, 64, 8, 64, 16, 84
    model = LanguageModel(vocab, layers, d, heads, 4 * d, context)
    tokens = torch.randint(vocab, (sequences, context))
    weights = [*model.parameters()]
    kept = saved_bytes(lambda: cross_entropy(model(tokens), tokens), weights)
    billed = training_memory(0, sequences, context, layers, d, heads, vocab)
    assert billed < kept < 1.05 * billed
