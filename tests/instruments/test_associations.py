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


def found(erase, decay=1.0, keys=12, even=False):
    """Return the shares of keys whose newest value an untrained memory recovers.

    The first is that of keys which were written again, the second that of keys written once.
    """
    with training.seeded(1):
        tokens, values, codes, newest, times = associations.vectors(8, keys, even)
    writes = (torch.arange(3 * keys) < 2 * keys).float().expand(len(tokens), -1)
    decays = torch.full_like(writes, decay)
    read = matrix_memory(tokens, tokens, values, decays, erase * writes, writes)[:, 2 * keys :]
    right = (associations.nearest(read, codes) == newest).float()
    return right[times > 1].mean().item(), right[times == 1].mean().item()


def test_erasing_recovers_most_of_twelve_rewritten_keys_in_eight_dimensions_and_a_sum_does_not():
    assert found(0)[0] < 0.5 < 0.6 < found(1)[0] < 0.8
    assert found(0, even=True)[0] < 0.55 < 0.85 < found(1, even=True)[0]


def test_erasing_costs_keys_that_are_written_once_and_a_fixed_decay_is_between():
    adds, fades, erases = found(0), found(0, 0.95), found(1)
    assert adds[0] + 0.1 < fades[0] < erases[0] - 0.05
    assert adds[1] - 0.05 > fades[1] > erases[1] + 0.03


def test_each_doubling_of_the_keys_costs_recall():
    for erase in (0, 1):
        shares = [found(erase, keys=keys)[0] for keys in (8, 16, 32, 64)]
        assert all(later < earlier - 0.03 for earlier, later in pairwise(shares))


def test_where_the_subject_changes_a_gate_helps_a_sum_more_than_the_delta_rule():
    with training.seeded(1):
        tokens, values, codes, right = associations.new_subject(8)
    writes = (torch.arange(40) < 32).float().expand(200, -1)
    gate = torch.ones(200, 40)
    gate[:, 24] = 0

    def recalled(decay, erase):
        read = matrix_memory(tokens, tokens, values, decay, erase * writes, writes)[:, 32:]
        return (associations.nearest(read, codes) == right).float().mean().item()

    (adds, gated), (erases, both) = (
        [recalled(decay, erase) for decay in (torch.ones(200, 40), gate)] for erase in (0, 1)
    )
    assert adds < 0.6 < erases < both < 0.8 < 0.9 < gated
