"""The language model: what it begins with, what is tied, and that it learns."""

import math

import pytest
import torch
from torch import nn

from course_lib.instruments import training
from course_lib.language_model import LanguageModel, cross_entropy, examples

SIZES = {"vocab": 11, "layers": 2, "d_model": 24, "heads": 2, "d_ff": 48, "max_length": 8}


def new(**parts):
    with training.seeded(0):
        return LanguageModel(**SIZES, **parts)


def test_the_head_is_the_embedding_and_is_learned_once():
    model = new()
    assert model.output.weight is model.embedding.table
    assert model.output.bias is None
    names = [name for name, _ in model.named_parameters()]
    assert "embedding.table" in names
    assert "output.weight" not in names


def test_a_new_model_is_about_as_surprised_as_one_that_guesses():
    tokens = torch.randint(11, (50, 9), generator=torch.Generator().manual_seed(0))
    loss = cross_entropy(new()(tokens[:, :-1]), tokens[:, 1:]).item()
    assert math.log(11) - 0.1 < loss < math.log(11) + 1


def test_a_text_that_is_too_long_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="at most 8 tokens, one for each learned position"):
        new()(torch.zeros(9, dtype=torch.long))


def test_its_parts_can_be_exchanged():
    def bare(max_length, d_model):
        return nn.Identity()

    model = new(positions=bare)
    assert model(torch.zeros(20, dtype=torch.long)).shape == (20, 11)


def test_it_learns_a_text_that_repeats_itself():
    model, text = new(), torch.arange(200) % 7
    batch = examples(text, 8, 5)

    def loss(model, batch):
        return cross_entropy(model(batch[0]), batch[1])

    training.train(model, (batch for _ in range(150)), loss, steps=150, learning_rate=0.01)
    assert loss(model, batch).item() < 0.2
