"""What a notebook calls, inside a workspace and outside."""

import errno
import os

import pytest
import torch

from course_lib.answers.source import define
from course_lib.checking import catalogue, panel
from course_lib.exercises import check, hint, mine, reveal, solution, verdict
from course_lib.files.workspace import Workspace

FACTOR = 2


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Workspace.make(tmp_path)


def right():
    return define("def double(x):\n    return FACTOR * x\n", "double", {"FACTOR": FACTOR})


def test_outside_a_workspace_nothing_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check("start/hello", right())
    hint("start/hello")
    assert list(tmp_path.iterdir()) == []


def test_a_passed_answer_is_kept_with_what_it_uses(workspace, capsys):
    check("start/hello", right())
    assert workspace.record("start/hello").passed
    assert "FACTOR = 2" in workspace.answer("start/hello")
    own = mine("start/hello")
    assert "your own" in capsys.readouterr().out
    assert own(torch.tensor(3.0)) == 6
    assert verdict("start/hello", own).status == "passed"


def test_a_later_failure_takes_nothing_away(workspace):
    check("start/hello", right())
    check("start/hello", lambda x: x)
    record = workspace.record("start/hello")
    assert (record.status, record.passed, record.attempts) == ("known mistake", True, 2)
    assert record.points == record.max_points


def test_an_answer_that_needs_its_notebook_is_not_kept(workspace, capsys):
    source = "def double(x):\n    return FACTOR * x\n"
    check("start/hello", define(source, "double", {"FACTOR": torch.tensor(2.0)}))
    assert "FACTOR, a Tensor" in capsys.readouterr().out
    assert workspace.answer("start/hello") is None


def test_mine_is_the_librarys_until_the_answer_has_passed(workspace, capsys):
    assert mine("start/hello") is catalogue.load("start/hello").reference
    assert "the library's" in capsys.readouterr().out


def test_the_librarys_own_function_is_no_answer(workspace, capsys):
    double = mine("start/hello")
    check("start/hello", double)
    assert "This is the library's own `double`" in capsys.readouterr().out
    assert not workspace.record("start/hello").passed


def test_an_unwritable_workspace_is_named_and_the_verdict_still_shown(
    workspace, capsys, monkeypatch
):
    def full(*paths):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    check("start/hello", lambda x: x)
    before = workspace.record("start/hello")
    monkeypatch.setattr(os, "replace", full)
    check("start/hello", right())
    out = capsys.readouterr().out
    assert "start/hello: passed" in out
    assert "could not be recorded" in out
    assert workspace.record("start/hello") == before
    assert not list(workspace.folder.rglob(".*.json.*"))


def test_hints_go_on_and_end(workspace, capsys):
    shown = []
    for _ in range(3):
        hint("start/hello")
        shown.append(capsys.readouterr().out.splitlines()[1])
    assert shown == [*catalogue.load("start/hello").hints, catalogue.load("start/hello").hints[-1]]


def test_the_solution_passes(capsys):
    solution("start/hello")
    source = capsys.readouterr().out
    names = dict(vars(__import__("course_lib.start", fromlist=["start"])))
    del names["double"]
    assert verdict("start/hello", define(source, "double", names)).status == "passed"


def test_reveal_sets_guess_and_measurement_side_by_side(capsys):
    reveal(0.5, 0.123456)
    reveal(None, 7)
    out = capsys.readouterr().out
    assert out == "You said 0.5; measured: 0.123.\nYou made no guess; measured: 7.\n"


def test_both_faces_say_the_same():
    found = verdict("start/hello", lambda x: x + 2)
    text, html = panel.text(found), panel.html(found)
    for fact in (found.message, "0 of 5 cases", "doubling a sum", "expected", "float32 (1,)"):
        assert fact in text
        assert fact in html
    assert "<script" not in html


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.bool, torch.int8])
def test_a_result_of_any_dtype_can_be_shown(dtype):
    found = verdict("start/hello", lambda x: x.to(dtype))
    shown = str(dtype).removeprefix("torch.")
    assert f"dtype {shown}, where float32 is expected" in panel.text(found)
    assert shown in panel.html(found)


def test_the_html_face_escapes_what_an_answer_prints():
    source = "def double(x):\n    print('<b>&')\n    return x\n"
    assert "&lt;b&gt;&amp;" in panel.html(verdict("start/hello", define(source, "double")))
