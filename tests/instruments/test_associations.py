"""Texts of keys and values: what is asked for, and what counts as recalled."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from course_lib.beyond import matrix_memory
from course_lib.instruments import associations, training
from course_lib.instruments.associations import QUESTIONS, WRITES, Attention, Reader


class Knows(nn.Module):
    """Score the value that `choose` names of all that was written under the asked key."""

    def __init__(self, choose):
        super().__init__()
        self.choose = choose

    def forward(self, keys, values):
        """Return one-hot scores at each position."""
        found = torch.zeros_like(keys)
        for row, (text, written) in enumerate(zip(keys, values, strict=True)):
            for i in range(WRITES, WRITES + QUESTIONS):
                found[row, i] = self.choose(written[:WRITES][text[:WRITES] == text[i]])
        return nn.functional.one_hot(found, associations.VALUES).float()


def test_who_names_the_newest_value_recalls_all_and_who_names_the_oldest_few():
    assert associations.recalled(Knows(lambda written: written[-1])) == 1
    assert associations.recalled(Knows(lambda written: written[0])) < 0.2


def test_the_loss_counts_the_questions_alone():
    batch = next(associations.texts(4, 0))
    assert (batch[2] != -100).sum() == 4 * QUESTIONS
    assert (batch[2][:, :WRITES] == -100).all()


def test_a_reader_sees_no_later_token():
    model = Reader((Attention, Attention), 4)
    keys, values, *_ = next(associations.texts(2, 0))
    other = values.clone()
    other[:, 20:] = 0
    assert torch.equal(model(keys, values)[:, :20], model(keys, other)[:, :20])


@pytest.mark.parametrize("even", [False, True])
def test_keys_of_an_untrained_memory_have_norm_one_and_a_question_writes_nothing(even):
    tokens, values, codes, newest, _ = associations.vectors(8, 12, even)
    assert torch.allclose(tokens.norm(dim=-1), torch.ones(200, 36))
    assert not values[:, 24:].any()
    # the last write is the newest of its key
    key = (tokens[:, 24:] == tokens[:, 23:24]).all(-1).float().argmax(-1)
    assert torch.equal(codes[newest[range(200), key]], values[:, 23])


def test_evenly_spread_keys_overlap_less_than_random_ones():
    def overlap(even):
        keys = associations.vectors(8, 12, even)[0][:, 24:]
        return (keys @ keys.mT).square().sum((-1, -2)).mean()

    assert overlap(even=True) == pytest.approx(12 * 12 / 8)  # the least possible
    assert overlap(even=True) < overlap(even=False) - 5


def found(erase, keys=12, even=False):
    """Return the share of rewritten keys whose newest value an untrained memory recovers."""
    with training.seeded(1):
        tokens, values, codes, newest, again = associations.vectors(8, keys, even)
    writes = (torch.arange(3 * keys) < 2 * keys).float().expand(len(tokens), -1)
    read = matrix_memory(tokens, tokens, values, torch.ones_like(writes), erase * writes, writes)
    nearest = torch.cdist(read[:, 2 * keys :], codes.expand(len(read), -1, -1)).argmin(-1)
    return (nearest == newest)[again].float().mean().item()


def test_erasing_recovers_most_of_twelve_keys_in_eight_dimensions_and_a_sum_does_not():
    assert found(erase=0) < 0.5 < 0.6 < found(erase=1) < 0.8
    assert found(erase=0, even=True) < 0.55 < 0.85 < found(erase=1, even=True)


def test_each_doubling_of_the_keys_costs_recall():
    shares = [found(1, keys) for keys in (8, 16, 32, 64)]
    assert all(later < earlier - 0.05 for earlier, later in pairwise(shares))
