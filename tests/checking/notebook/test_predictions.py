"""A prediction is kept once, in the workspace alone, and judged where a machine can."""

import errno
import os

import pytest
import torch

from course_lib.checking.notebook import predictions
from course_lib.exercises import reveal
from course_lib.files.workspace import MARK, Workspace


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    made = Workspace.make(tmp_path / "mine")
    monkeypatch.chdir(made.folder)
    return made


@pytest.mark.parametrize(
    ("guess", "measured", "verdict"),
    [
        (10, 10, "right"),
        (95, 100.0, "right"),
        (60, 100, "near"),
        (40, 100, "off"),
        (-1, 1, "off"),
        (0, 0.0, "right"),
        (0, 3, "off"),
        (float("nan"), 3, "off"),
        (True, True, "right"),
        (False, True, "off"),
        (True, 1, ""),
        ("no", "no: each position sees its future", "right"),
        ("No", "no", "right"),
        ("yes", "no", ""),
        ("", "no", ""),
        ((4, 6), (4, 6), "right"),
        ([4, 3], (4, 6), "near"),
        ((4, 1), [4, 6], "off"),
        ((4,), (4, 6), "off"),
        ((4, "copy"), (4, "sort"), ""),
        ([], [], "right"),
        (0.5, {"copy": 0.5}, ""),
        ([1, 2], {"copy": 1.0, "sort": 2.0}, "right"),
        (2, torch.tensor(2.0), "right"),
        ("in my own words", 7, ""),
        (object(), 7, ""),
    ],
)
def test_what_can_be_compared_is(guess, measured, verdict):
    assert predictions.verdict(guess, measured) == verdict


def test_the_first_guess_stays(workspace):
    for guess in (None, 3, 7):
        reveal(guess, 7)
    [kept] = workspace.guesses().values()
    assert (kept.said, kept.measured, kept.verdict) == ("3", "7", "off")
    assert kept.when


def test_nothing_is_kept_outside_a_workspace(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    reveal(3, 7)
    assert capsys.readouterr().out == "You said 3; measured: 7. Off by a factor of 2.33.\n"
    assert not list(tmp_path.iterdir())


def test_a_damaged_guess_is_left_out_and_a_full_disk_stops_nobody(workspace, monkeypatch, capsys):
    reveal(3, 7)
    [path] = (workspace.folder / MARK / "guesses").iterdir()
    path.write_text("{")
    assert workspace.guesses() == {}
    path.unlink()

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.replace", refuse)
    reveal(3, 7)
    assert workspace.guesses() == {}
    assert capsys.readouterr().out.count("measured: 7.") == 2


def test_a_cell_is_known_by_its_text_however_its_lines_end():
    assert predictions.key("reveal(guess, 1)\n") == predictions.key("\nreveal(guess, 1)  \r\n")
    assert predictions.key("reveal(guess, 1)") != predictions.key("reveal(guess, 2)")


def test_the_lessons_ask_for_predictions_and_each_place_has_a_question():
    places = list(predictions.asked())
    assert len(places) > 100
    assert len({place.key for place in places}) == len(places)
    assert all(place.question.endswith("?") for place in places)


def test_a_guess_made_in_a_cell_is_kept_under_the_text_of_that_cell(workspace, shell):
    cell = "guess = 6\nreveal(guess, 7)\nassert True\n"
    shell.run_cell("from course_lib.exercises import reveal").raise_error()
    shell.run_cell(cell, store_history=True).raise_error()
    assert list(workspace.guesses()) == [predictions.key(cell)]


@pytest.mark.parametrize(
    ("guess", "measured", "said"),
    [
        (39.9, 40, "Right."),
        (25, 40, "Near: within a factor of two."),
        (800, 40, "Off by a factor of 20."),
        (40e9, 40, "factor of 1,000,000,000: are the units a billion apart, as bytes"),
        (30, 0.3, "Off by a factor of 100: was one of the two in percent?"),
        ("40 GB", 40, "what was measured is a number, and your guess is a text."),
        ([40], 40, "what was measured is a number, and your guess is a list of one."),
        ((4, 60), (4, 3), "Right. Off by a factor of 20."),
        ((4, 3, 1), (4, 3), "Off: 2 were measured, and you named 3."),
        (-1, 1, "Off."),
        (False, True, "Off."),
        ("in my own words", "theirs", "Compare the two yourself."),
    ],
)
def test_a_guess_is_answered(guess, measured, said):
    assert said in predictions.told(guess, measured)


def test_a_guess_that_was_skipped_is_not_answered_by_the_last_one(workspace, shell, capsys):
    shell.run_cell("from course_lib.exercises import reveal").raise_error()
    capsys.readouterr()
    for cell in ("guess = 6", "reveal(guess, 7)", "reveal(guess, 8)", "reveal(guess, 7)"):
        shell.run_cell(cell, store_history=True).raise_error()
    said = [line.partition(";")[0] for line in capsys.readouterr().out.splitlines()]
    assert said == ["You said 6", "Measured: 8.", "You said 6"]
