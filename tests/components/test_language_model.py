"""What holds of `course_lib.language_model`."""

import inspect
import math

import pytest
import torch
from torch import nn

from course_lib.instruments import training
from course_lib.language_model import (
    LanguageModel,
    cross_entropy,
    examples,
    generate,
    temper,
    top_k,
    top_p,
)

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


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def counting(tokens):
    """Stand in for a model: after token t, t + 1 is near certain, modulo 10."""
    following = (tokens + 1) % 10
    return 50.0 * torch.nn.functional.one_hot(following, 10).float()


def test_writing_keeps_the_prompt_and_follows_the_model():
    written = generate(counting, torch.tensor([3, 4]), 5, 8, generator())
    assert written.tolist() == [3, 4, 5, 6, 7, 8, 9]


def test_the_model_reads_no_more_than_it_has_room_for():
    lengths = []

    def model(tokens):
        lengths.append(len(tokens))
        return counting(tokens)

    generate(model, torch.tensor([0, 1, 2]), 6, 4, generator())
    assert lengths == [3, 4, 4, 4, 4, 4]


def test_draws_follow_the_probabilities_and_a_seed_repeats_them():
    logits = torch.tensor([0.5, 0.3, 0.2]).log()

    def model(tokens):
        return logits.expand(len(tokens), 3)

    one, again = (generate(model, torch.tensor([0]), 3000, 1, generator()) for _ in range(2))
    assert torch.equal(one, again)
    shares = torch.bincount(one[1:], minlength=3) / 3000
    torch.testing.assert_close(shares, logits.exp(), atol=0.03, rtol=0)
    only = generate(model, torch.tensor([0]), 50, 1, generator(), lambda z: top_k(z, 1))
    assert not only.any()


@pytest.mark.parametrize("temperature", [0, -1, float("nan")])
def test_a_temperature_that_is_not_positive_is_refused(temperature):
    with pytest.raises(ValueError, match=r"must be positive.*argmax for the limit 0"):
        inspect.unwrap(temper)(torch.zeros(3), temperature)


def test_what_cannot_be_sampled_from_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="this one is empty"):
        generate(counting, torch.empty(0, dtype=torch.long), 5, 4, generator())
    with pytest.raises(ValueError, match="k must be 1 or more, not 0"):
        inspect.unwrap(top_k)(torch.zeros(3), 0)
    for p in (0, -0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match=f"at most 1, not {p}"):
            inspect.unwrap(top_p)(torch.zeros(3), p)
