"""How much of the pointer task a model explains."""

import pytest
import torch
from torch import nn

from course_lib.data import pointers
from course_lib.instruments import pointer_models
from course_lib.self_attention import SelfAttention, pointer_weights


def test_a_model_that_fetches_explains_all_and_one_that_says_zero_nothing():
    attention, read = SelfAttention(17, 8, 1), nn.Linear(1, 1)
    for own, by_hand in zip(attention.parameters(), pointer_weights(8), strict=True):
        own.data = by_hand
    for number, parameter in enumerate((1.0, 0.0)):
        list(read.parameters())[number].data.fill_(parameter)
    model = nn.Sequential(attention, read)
    assert pointer_models.explained(model, 200) == pytest.approx(1, abs=1e-4)
    read.weight.data.zero_()
    assert pointer_models.explained(model, 200) == 0


def test_training_is_drawn_by_its_seed():
    def trained(seed):
        torch.manual_seed(0)
        return pointer_models.train(SelfAttention(17, 8, 4), 4, seed, steps=3)

    x, _ = pointers.sentences(2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(trained(0)(x), trained(0)(x))
    assert not torch.equal(trained(0)(x), trained(1)(x))
