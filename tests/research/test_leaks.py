"""What lesson 05 says of three models that leak, and of a network's ReLU, in every kept run."""

import pytest
import torch

from course_lib.instruments import results

LEAKS = results.load("leaks")["figures"]
KEPT = LEAKS["runs"]
VOCAB = 84
CHEATS = ("Bob", "Cleo", "Dan")


def runs(name):
    """Return each seed's run of a model beside the honest one of the same seed."""
    return list(zip(KEPT[name], KEPT["Ann"], strict=False))


def past(run):
    return torch.tensor(run["past by length"])


def test_an_honest_model_has_the_same_loss_with_the_future_shown_and_hidden():
    for run in KEPT["Ann"]:
        assert past(run).mean().item() == pytest.approx(run["whole"], abs=1e-3)
        assert (past(run)[-1] - past(run)[3:].mean()).abs() < 0.2


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_boasts_and_is_worse_than_the_honest_model_where_only_the_past_is_shown(name):
    assert KEPT[name]
    for run, honest in runs(name):
        assert run["whole"] < honest["whole"] - 0.1
        assert past(run).mean() > past(honest).mean() + 1


@pytest.mark.parametrize("name", CHEATS)
def test_a_leak_hides_where_the_window_is_full(name):
    for run, honest in runs(name):
        above = past(run) - past(honest)
        assert above[:8].mean() > 2, "few characters"
        assert above[-1] < 1.5, "all 32: the last place had no future in training"
        assert above[-1] < above[:24].min()


def test_bob_repeats_a_character_that_is_shown_alone():
    assert min(LEAKS["repeats"]) > 0.95


def test_cleos_loss_is_in_part_a_matter_of_scale_and_for_the_rest_of_the_trace():
    for (run, honest), scaled in zip(runs("Cleo"), LEAKS["scaled"], strict=True):
        assert scaled < past(run).mean() / 2
        assert scaled > 2 * past(honest).mean()


def test_cleo_knows_less_than_nothing_until_her_window_is_nearly_full():
    for run in KEPT["Cleo"]:
        assert past(run)[:24].min() > torch.tensor(VOCAB).log() + 1


def test_without_the_relu_a_networks_parameters_win_nothing():
    for linear, honest in runs("Ann, without the ReLU"):
        assert linear["whole"] > honest["whole"] + 0.1
    for linear, none in zip(
        KEPT["Ann, without the ReLU"], KEPT["Ann, without a network"], strict=False
    ):
        assert linear["whole"] > none["whole"] - 0.05
