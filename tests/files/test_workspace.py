"""What a workspace keeps, and that a failure loses none of it."""

import errno
import os
import stat

import pytest

from course_lib.command_line.progress import pack, unpack
from course_lib.files.workspace import MARK, VARIABLE, Guess, Record, Workspace

ID = "attention/softmax"


@pytest.fixture
def workspace(tmp_path):
    return Workspace.make(tmp_path / "mine")


def test_it_is_found_from_any_folder_inside(workspace, tmp_path):
    inside = workspace.folder / "deep" / "down"
    inside.mkdir(parents=True)
    assert Workspace.find(inside) == Workspace.find(workspace.folder) == workspace
    assert Workspace.find(tmp_path) is None


def test_the_environment_names_it_before_the_folder_does(workspace, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "drive"))
    assert Workspace.find(workspace.folder) is None
    made = Workspace.make_here()
    assert made.folder == tmp_path / "drive"
    assert Workspace.find(workspace.folder) == made


def test_one_file_carries_what_has_passed_and_what_has_passed_here_stays(workspace, tmp_path):
    file, other = tmp_path / "kept.zip", "rnn/cell"
    for exercise_id in (ID, other):
        workspace.note_check(exercise_id, "passed", 14, 14)
        workspace.keep(exercise_id, "theirs")
    for key in ("both", "theirs"):
        workspace.note_guess(key, Guess("1", "2", "near"))
    pack(workspace, file)
    here = Workspace.make(tmp_path / "elsewhere")
    here.note_guess("both", Guess("2", "2", "right"))
    here.note_check(ID, "passed", 14, 14)
    here.keep(ID, "mine")
    assert unpack(here, file, [ID, other, "start/hello"]) == [other]
    assert (here.answer(ID), here.answer(other)) == ("mine", "theirs")
    assert {key: x.said for key, x in here.guesses().items()} == {"both": "2", "theirs": "1"}


def test_a_record_keeps_the_best_points_and_the_last_status(workspace):
    workspace.note_check(ID, "not attempted", 0, 14)
    assert workspace.record(ID) == Record()
    workspace.note_check(ID, "passed", 14, 14)
    workspace.note_hint(ID, 2)
    workspace.note_check(ID, "wrong", 4, 14)
    record = workspace.record(ID)
    assert (record.status, record.points, record.passed, record.attempts) == ("wrong", 14, True, 2)
    workspace.note_hint(ID, 1)
    assert workspace.record(ID).hints == 2


def test_a_damaged_record_counts_as_none(workspace):
    workspace.note_check(ID, "passed", 14, 14)
    (path,) = (workspace.folder / MARK / "records").rglob("*.json")
    for damage in ("", "[]", '{"status": "passed", "unknown": 1}'):
        path.write_text(damage)
        assert workspace.record(ID) == Record()


def test_backups_of_the_same_moment_do_not_meet(workspace):
    paths = [workspace.back_up(ID, f"answer {n}") for n in range(20)]
    assert [path.read_text() for path in paths] == [f"answer {n}" for n in range(20)]


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS])
def test_what_cannot_be_written_leaves_the_old(workspace, monkeypatch, reason):
    def refuse(*_):
        raise OSError(reason, os.strerror(reason))

    workspace.keep(ID, "old")
    workspace.note_releases({"01.ipynb": "a"})
    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match=os.strerror(reason)):
        workspace.keep(ID, "new")
    with pytest.raises(OSError, match=os.strerror(reason)):
        workspace.note_releases({"01.ipynb": "b"})
    assert workspace.answer(ID) == "old"
    assert workspace.releases() == {"01.ipynb": "a"}
    kept = [path.name for path in workspace.folder.rglob("*") if path.is_file()]
    assert sorted(kept) == ["releases.json", "softmax.py"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no umask")
def test_a_record_has_the_rights_that_its_owner_gives_new_files(workspace):
    old = os.umask(0o077)
    try:
        workspace.keep(ID, "mine")
    finally:
        os.umask(old)
    assert stat.S_IMODE((workspace.folder / MARK / "answers" / f"{ID}.py").stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [5, 32])
def test_a_file_that_a_scanner_has_open_is_replaced_a_moment_later(workspace, monkeypatch, number):
    def busy(*_):
        monkeypatch.undo()
        raise error

    error = PermissionError(13, "open elsewhere")
    error.winerror = number  # as Windows has it
    monkeypatch.setattr(os, "replace", busy)
    workspace.keep(ID, "mine")
    assert workspace.answer(ID) == "mine"


def test_a_file_that_may_not_be_replaced_is_said_at_once(workspace, monkeypatch):
    def refuse(*_):
        calls.append(1)
        raise PermissionError(13, "not yours")

    calls = []
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        workspace.keep(ID, "mine")
    assert len(calls) == 1
