"""The laws of directions through a model's weights, and of the loss along them."""

import pytest
import torch
from torch import nn

from course_lib.instruments import loss_landscape, training


def squared_error(model, batch):
    x, y = batch
    return (model(x) - y).square().mean()


@pytest.fixture
def model():
    with training.seeded(0):
        return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)).double()


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(7, size, generator=generator, dtype=torch.float64) for size in (3, 2))


def seed(number):
    return torch.Generator().manual_seed(number)


def test_each_row_of_a_direction_is_as_long_as_the_weights_row(model):
    weights = dict(model.named_parameters())
    directions = loss_landscape.direction(weights, seed(2))
    assert directions.keys() == weights.keys()
    for name in ("0.weight", "2.weight"):
        torch.testing.assert_close(directions[name].norm(dim=-1), weights[name].norm(dim=-1))
        assert not torch.allclose(directions[name], weights[name])


def test_vectors_do_not_move(model):
    directions = loss_landscape.direction(dict(model.named_parameters()), seed(2))
    assert not directions["0.bias"].any()
    assert not directions["2.bias"].any()


def test_the_seed_decides_the_direction(model):
    weights = dict(model.named_parameters())
    one, same, other = (loss_landscape.direction(weights, seed(s))["0.weight"] for s in (2, 2, 3))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)


def test_the_centre_is_the_models_own_loss(model, batch):
    distances = torch.tensor([-0.5, 0.0, 1.0], dtype=torch.float64)
    losses = loss_landscape.surface(model, squared_error, batch, distances, seed(2))
    assert losses.shape == (3, 3)
    torch.testing.assert_close(losses[1, 1], squared_error(model, batch).detach())


def test_rows_follow_the_first_direction_and_columns_the_second(model, batch):
    distances = torch.tensor([0.0, 1.0], dtype=torch.float64)
    losses = loss_landscape.surface(model, squared_error, batch, distances, seed(2))
    generator, weights = seed(2), dict(model.named_parameters())
    directions = [loss_landscape.direction(weights, generator) for _ in range(2)]
    for direction, found in zip(directions, (losses[1, 0], losses[0, 1]), strict=True):
        moved = {name: weights[name] + direction[name] for name in weights}
        step = torch.func.functional_call(model, moved, (batch[0],))
        torch.testing.assert_close(found, (step - batch[1]).square().mean().detach())


def test_the_model_is_left_as_it_was(model, batch):
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    loss_landscape.surface(model, squared_error, batch, torch.linspace(-1, 1, 3).double(), seed(2))
    for name, weight in model.named_parameters():
        assert torch.equal(weight, before[name])
        assert weight.grad is None
