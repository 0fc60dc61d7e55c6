"""The training loop, on models small enough to know the answer."""

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from course_lib.instruments import training
from course_lib.instruments.training import CLAIM, ClaimFailed, expect, seeded, train


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


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves by hand: `clock.now += seconds`."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(training.time, "perf_counter", lambda: clock.now)
    return clock


def test_on_a_slow_machine_the_clock_ends_the_training_and_the_learning_rate_falls_by_it(
    clock, capsys
):
    def slow(model, batch):
        clock.now += 0.005
        return slope(model, batch)

    model = Point()
    history = train(
        model, itertools.repeat(None), slow, steps=10_000, learning_rate=0.01, seconds=0.4
    )
    assert history is model.history
    assert history.steps == pytest.approx(80, abs=1)
    assert not history.complete
    assert rates(model)[-1] < 0.1 * rates(model).max()
    # fewer than a tenth of the steps: a page says why its model has not learned
    assert f"Only {history.steps} of 10000 steps" in capsys.readouterr().out


def interrupted_at(place):
    def loss(model, batch):
        if len(model.path) == place:
            raise KeyboardInterrupt
        return slope(model, batch)

    return loss


def test_a_reader_who_stops_a_training_keeps_its_model(monkeypatch, capsys):
    monkeypatch.setattr(training, "get_ipython", object)
    model = Point()
    history = train(model, itertools.repeat(None), interrupted_at(4), steps=9, learning_rate=0.01)
    assert history is model.history
    assert history.steps == 4
    assert not model.training
    assert "Stopped at step 4 of 9: the model is kept as it is." in capsys.readouterr().out


@pytest.mark.parametrize(("place", "notebook"), [(4, None), (0, object())])
def test_an_interrupt_ends_a_program_and_a_training_that_has_not_begun(
    monkeypatch, place, notebook
):
    monkeypatch.setattr(training, "get_ipython", lambda: notebook)
    with pytest.raises(KeyboardInterrupt):
        train(Point(), itertools.repeat(None), interrupted_at(place), steps=9, learning_rate=0.01)


def test_a_slow_first_step_alone_changes_nothing(clock):
    def slow_at_first(model, batch):
        clock.now += 0.01 if model.path else 0.2
        return slope(model, batch)

    paths = []
    for seconds in (None, 5.0):
        model = Point()
        history = train(
            model, range(50), slow_at_first, steps=50, learning_rate=0.01, seconds=seconds
        )
        assert history.complete
        paths.append(model.path)
    assert paths[0] == paths[1]


@pytest.mark.parametrize(("factor", "steps"), [("0.01", 1), ("1", 40), ("inf", 100)])
def test_the_environment_lengthens_and_shortens_the_time(clock, monkeypatch, factor, steps):
    def slow(model, batch):
        clock.now += 0.01
        return slope(model, batch)

    monkeypatch.setenv("COURSE_CLOCK", factor)
    history = train(Point(), range(100), slow, steps=100, learning_rate=0.01, seconds=0.4)
    assert history.steps == pytest.approx(steps, abs=1)


@pytest.fixture
def shown(monkeypatch):
    """Collect what is displayed."""
    kept = []
    monkeypatch.setattr(training, "display", lambda data, raw: kept.append(data))
    return kept


def trained(steps, asked=10):
    model = Point()
    train(model, range(steps), slope, steps=asked, learning_rate=0.01)
    return model


def test_a_claim_that_holds_is_shown_with_what_came(shown):
    expect("x moves", True, torch.tensor([0.5]), trained(10))
    [data] = shown
    assert data["text/plain"] == "✓ expected: x moves. Measured: tensor([0.5000])."
    assert data[CLAIM] == {"claim": "x moves", "holds": True, "came": [0.5]}


def test_what_was_measured_is_rounded_to_be_read_and_kept_as_it_is(shown):
    came = {"losses": [1.48778, 600], "ahead": (0.0112932,)}
    expect("x moves", True, came, trained(10))
    assert "Measured: {'losses': [1.49, 600], 'ahead': (0.0113,)}." in shown[0]["text/plain"]
    assert shown[0][CLAIM]["came"] == {"losses": [1.48778, 600], "ahead": [0.0112932]}


def test_a_claim_that_fails_says_what_came_and_that_the_machine_may_be_the_reason(shown):
    with pytest.raises(ClaimFailed, match=r"x moves. Measured: 0.5.*it is the machine"):
        expect("x moves", False, 0.5, trained(10))
    assert shown[0][CLAIM]["holds"] is False


def test_a_claim_about_a_training_that_the_clock_ended_binds_nobody(shown):
    expect("x moves", False, 0.5, trained(10), trained(4))
    assert "4 of 10 steps were taken" in shown[0]["text/plain"]
    assert shown[0][CLAIM]["holds"] is None


def test_what_came_is_what_json_has(shown):
    expect("x moves", True, [float("nan"), torch.tensor([1.0, torch.inf])], trained(10))
    assert shown[0][CLAIM]["came"] == ["nan", [1.0, "inf"]]


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
    assert "100%|" in shown.out
    assert "step 5 of 5, loss " in shown.out
    assert not shown.err


def test_a_bar_ends_at_its_end_and_tells_the_steps_that_were_taken(clock, capsys):
    def slow(model, batch):
        clock.now += 0.3
        return slope(model, batch)

    history = train(
        Point(), itertools.repeat(None), slow, steps=100, learning_rate=0.01, seconds=1.0
    )
    last = capsys.readouterr().out.rsplit("\r", 1)[-1]
    assert last.startswith("100%|")
    assert f"step {history.steps} of 100" in last
    assert history.steps < 5
