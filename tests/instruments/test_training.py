"""The training loop, on models small enough to know the answer."""

import itertools
import time

import pytest
import torch
from torch import nn

from course_lib.instruments.training import seeded, train


class Point(nn.Module):
    """One number; on a loss with a constant slope, each step of Adam moves it by its rate."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.zeros(1))
        self.path = []


def slope(model, batch):
    model.path.append(model.x.item())
    return 1000 * model.x.sum()


def rates(model):
    path = torch.tensor([*model.path, model.x.item()])
    return -path.diff()


def test_learning_rate_rises_then_falls_to_zero():
    model = Point()
    history = train(model, itertools.repeat(None), slope, steps=100, learning_rate=0.01)
    assert history.steps == len(history.losses) == 100
    expected = torch.tensor([0.01 * min((i + 1) / 5, 1 - i / 100) for i in range(100)])
    torch.testing.assert_close(rates(model), expected, atol=2e-4, rtol=0)
    assert model.x.grad.norm() <= 1


def test_without_a_warm_up_the_first_step_is_the_longest():
    model = Point()
    train(model, itertools.repeat(None), slope, steps=10, learning_rate=0.01, warm_up=0)
    torch.testing.assert_close(rates(model)[0].item(), 0.01, atol=2e-4, rtol=0)


def test_on_a_slow_machine_the_clock_ends_the_training_and_the_learning_rate_falls_by_it():
    model = Point()

    def slow(model, batch):
        time.sleep(0.005)
        return slope(model, batch)

    history = train(
        model, itertools.repeat(None), slow, steps=10_000, learning_rate=0.01, seconds=0.4
    )
    assert history.steps < 100
    assert 0.4 <= history.seconds < 1
    assert rates(model)[-1] < 0.1 * rates(model).max()


def test_a_machine_that_is_fast_enough_but_for_its_first_step_is_not_changed_by_the_clock():
    def slow_at_first(model, batch):
        time.sleep(0 if model.path else 0.2)
        return slope(model, batch)

    paths = []
    for seconds in (None, 5.0):
        model = Point()
        train(model, range(50), slow_at_first, steps=50, learning_rate=0.01, seconds=seconds)
        paths.append(model.path)
    assert paths[0] == paths[1]


def test_a_seed_gives_the_same_losses_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    runs = []
    for seed in (0, 0, 1):
        with seeded(0):
            model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
        runs.append(
            train(
                model,
                itertools.repeat(torch.ones(8)),
                lambda model, x: model(x).square().mean(),
                steps=10,
                learning_rate=0.01,
                seed=seed,
            ).losses
        )
        assert not model.training
    assert runs[0] == runs[1] != runs[2]
    assert torch.equal(before, torch.get_rng_state())


def test_a_loss_that_is_no_number_stops_with_its_step_and_likely_cause():
    def broken(model, batch):
        return model.x.sum() + (float("nan") if batch == 2 else 0.0)

    with pytest.raises(FloatingPointError, match=r"finite number but is nan at step 3.*0\.01"):
        train(Point(), range(5), broken, steps=5, learning_rate=0.01)


def test_progress_goes_to_the_screen_with_the_loss(capsys):
    train(Point(), range(5), slope, steps=5, learning_rate=0.01)
    shown = capsys.readouterr()
    assert "5/5" in shown.out
    assert "loss=" in shown.out
    assert not shown.err
