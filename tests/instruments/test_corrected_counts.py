"""A model that corrects counts begins as the counts, and does not see ahead."""

import pytest
import torch

from course_lib.corpus import NGrams
from course_lib.instruments.corrected_counts import CorrectedCounts

SIZES = (2, 8, 2, 16, 12)  # layers, d_model, heads, d_ff, max_length


@pytest.fixture
def counts():
    return NGrams(torch.randint(5, (200,), generator=torch.Generator().manual_seed(0)), 5, 3)


def test_untrained_it_predicts_as_the_counts_do(counts):
    tokens = torch.randint(5, (3, 12))
    found = CorrectedCounts(counts, *SIZES)(tokens).softmax(-1)
    torch.testing.assert_close(found, counts.probabilities(tokens))


def test_counts_that_are_given_take_the_place_of_its_own(counts):
    tokens, other = torch.randint(5, (3, 12)), torch.randn(3, 12, 5).log_softmax(-1)
    found = CorrectedCounts(counts, *SIZES)(tokens, other)
    torch.testing.assert_close(found.log_softmax(-1), other)


def test_trained_it_differs_and_does_not_see_ahead(counts):
    model = CorrectedCounts(counts, *SIZES)
    torch.nn.init.normal_(model.output.weight)
    tokens = torch.randint(5, (1, 12))
    changed = tokens.clone()
    changed[:, 7:] = 4 - changed[:, 7:]
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :7], after[:, :7])
    assert (before[:, :7].softmax(-1) - counts.probabilities(tokens)[:, :7]).abs().max() > 0.1
