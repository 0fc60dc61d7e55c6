"""`course watch`, driven by real saves of real files."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from course_lib.answers.process import ChildProcess
from course_lib.command_line import watch
from course_lib.files.workspace import Workspace

ID = "start/hello"
WRONG, RIGHT = "def double(x):\n    return x**2", "def double(x):\n    return 2 * x"


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Take steps, one between two looks at a folder, and tell which files are said to be saved."""

    def after(*steps):
        left = list(steps)

        def pause(_):
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr(watch.time, "sleep", pause)
        found = []
        with contextlib.suppress(KeyboardInterrupt):
            for file in watch.saves(tmp_path):
                found.append(file.name)
        return found

    return after


def nothing():
    pass


def test_a_save_is_told_once_and_not_before_it_has_ended(tmp_path, saved):
    file = tmp_path / "a.ipynb"
    file.write_text("old")
    half, whole = (lambda: file.write_text("half")), (lambda: file.write_text("the whole"))
    assert saved(nothing, nothing) == []
    assert saved(half, whole) == []
    file.write_text("old")
    assert saved(half, whole, nothing, nothing) == ["a.ipynb"]


def test_new_notebooks_are_watched_and_those_that_go_are_not_missed(tmp_path, saved):
    file, other = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    file.write_text("old")
    new = lambda: other.write_text("new")  # noqa: E731
    assert saved(file.unlink, new, nothing, nothing) == ["b.ipynb"]


def test_a_folder_that_goes_is_one_sentence_and_is_watched_again(tmp_path, saved, capsys):
    away = tmp_path.with_name("away")
    back = lambda: away.rename(tmp_path)  # noqa: E731
    new = lambda: (tmp_path / "a.ipynb").write_text("new")  # noqa: E731
    go = lambda: tmp_path.rename(away)  # noqa: E731
    assert saved(go, nothing, nothing, nothing, back, new, nothing) == ["a.ipynb"]
    assert capsys.readouterr().out == f"{tmp_path} is gone; it is watched again when it is back.\n"


def test_a_notebook_that_gets_its_first_exercise_is_judged(tmp_path, capsys):
    def notebook(source):
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
        cells = [cell | {"source": source}]
        return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}

    with ChildProcess() as child:
        exercise = notebook(f"# exercise: {ID}\n{RIGHT}")
        watch.show(tmp_path / "own.ipynb", notebook("print(1)"), exercise, child)
    assert f"✓ {ID}: passed" in capsys.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a test cannot press Ctrl-C")
def test_it_judges_what_a_save_has_changed_until_ctrl_c(tmp_path, save_notebook):
    """One run of the command, since it takes seconds to start: saves, a broken file, Ctrl-C."""
    workspace = Workspace.make(tmp_path / "mine")
    file = workspace.folder / "00_start.ipynb"
    save = lambda *cells: save_notebook(file, *cells, lesson="00")  # noqa: E731
    save("1 + 1", (ID, "def double(x):\n    raise NotImplementedError"))
    with Watching(workspace.folder) as watching:
        watching.wait_for("Watching ")
        save("1 + 1", (ID, WRONG))
        said = watching.wait_for("Next: ")
        assert "00_start.ipynb, saved at " in said
        assert f"✗ {ID}: not yet, 0 of 9 points" in said
        assert "The result is the square of the input." in said
        assert f"Lesson 00: 0 of 1 exercises, about 30 minutes left. Next: `{ID}`" in said
        assert not workspace.record(ID).passed

        file.write_text("half of a")
        assert "00_start.ipynb is not a notebook" in watching.wait_for("not JSON")

        save("2 + 2", (ID, WRONG))  # no answer has changed
        save("2 + 2", (ID, RIGHT))
        said = watching.wait_for("Next: ")
        assert said.count("saved at") == 1
        assert f"✓ {ID}: passed, 9 of 9 points" in said
        assert "Lesson 00: 1 of 1 exercises, about 25 minutes left. Next: `rnn/cell`" in said
        # it is recorded just after it is said
        for _ in range(300):
            if workspace.answer(ID):
                break
            time.sleep(0.1)
        assert workspace.record(ID).passed
        assert workspace.answer(ID) == f"{RIGHT}\n"

        save("2 + 2", (ID, RIGHT + " (\n"))
        assert watching.wait_for("Stuck?").count("cell 3, line 2 is not Python") == 1
    assert watching.ended == (0, "")


class Watching:
    """A process of `course watch`, and what it has said."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "course_lib.command_line", "watch", str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said, self._told = "", 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self._said += line

    def wait_for(self, words, seconds=60):
        """Return what was said since the last time, up to the line with these words."""
        end = time.monotonic() + seconds
        while words not in self._said[self._told :]:
            assert time.monotonic() < end, f"no {words!r} in {self._said[self._told :]!r}"
            time.sleep(0.02)
        time.sleep(0.1)  # the rest of the line
        told, self._told = self._said[self._told :], len(self._said)
        return told

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._process.send_signal(signal.SIGINT)
        try:
            status = self._process.wait(20)
        finally:
            self._process.kill()
        self._reader.join()
        with self._process.stdout, self._process.stderr as errors:
            self.ended = status, errors.read()
