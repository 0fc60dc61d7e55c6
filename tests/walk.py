"""The way from an answer to its verdict, traced while it is gone: `python -m tests.walk`.

A file is on a walk if one of its functions runs, for whoever wants to follow has to open it. A move
is from one of the course's files to another. What only an import runs is no part of it, but the
exercises that it imports are counted.
"""

import argparse
import ast
import contextlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from course_lib.files.paths import PACKAGE
from course_lib.files.workspace import Workspace

ID = "attention/softmax"
RIGHT = """
import torch
from torch import Tensor

def softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    scores = scores.masked_fill(~mask, -torch.inf)
    peak = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    exponentials = torch.exp(scores - peak)
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1)
"""
ANSWERS = {
    "passed": RIGHT,
    "known mistake": RIGHT.replace("-torch.inf", "0"),
    "wrong": RIGHT.replace("exponentials /", "0.7 * exponentials /"),
}
ROW = "{:<34}{:>6}{:>8}{:>8}{:>8}{:>10}{:>11}"


class Walk:
    """Counts, while it is entered, what of the course runs in this thread."""

    def __init__(self):
        self.files, self.moves, self.parses = Counter[str](), 0, Counter[str]()
        self._before = set(sys.modules)
        self._last, self._ours = "", dict[CodeType, bool]()
        self._imports = 0  # that are under way

    def __enter__(self) -> "Walk":
        sys.setprofile(self._see)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        code, caller = frame.f_code, frame.f_back
        if code.co_name == "<module>" and code.co_filename.endswith(".py"):
            self._imports += 1 if event == "call" else -1
        parses = event == "call" and code is ast.parse.__code__ and caller
        if parses and self._is_ours(caller.f_code):
            self.parses[frame.f_locals["source"]] += 1
        if self._imports or not self._is_ours(code):
            return
        self.files[code.co_filename] += 1
        self.moves += code.co_filename != self._last
        self._last = code.co_filename

    def _is_ours(self, code: CodeType) -> bool:
        if code not in self._ours:
            inside = code.co_filename.startswith(f"{PACKAGE}/")
            self._ours[code] = inside and bool(code.co_flags & CO_OPTIMIZED)
        return self._ours[code]

    def row(self) -> list[int]:
        """Return files, their lines, moves, texts parsed, the most of one, exercises imported."""
        lines = sum(len(Path(x).read_text("utf8").splitlines()) for x in self.files)
        new = {*sys.modules} - self._before
        exercises = [x for x in new if x.startswith("course_lib.exercises.") and x.count(".") == 3]
        most = max(self.parses.values(), default=0)
        return [len(self.files), lines, self.moves, len(self.parses), most, len(exercises)]


def notebook(source: str) -> bytes:
    """Write a notebook of lesson 02 with one cell, that of the exercise."""
    cell = {"cell_type": "code", "metadata": {"exercise": ID}, "source": source, "outputs": []}
    course = {"course": {"lesson": "02"}}
    return json.dumps({"cells": [cell], "metadata": course, "nbformat": 4}).encode()


def check(source: str) -> Walk:
    """Run the cell of an answer, then that which checks it, as a notebook in a workspace does."""
    from IPython.core.interactiveshell import InteractiveShell

    Workspace.make(Path())
    shell = InteractiveShell.instance()
    shell.run_cell("from course_lib.exercises import check", store_history=True)
    shell.run_cell(source, store_history=True).raise_error()
    code = compile(f"check({ID!r})", "<cell>", "exec")
    with Walk() as walk:
        exec(code, shell.user_ns)
    return walk


def course_check(source: str) -> Walk:
    """Run `course check FILE`; what its child process does is no part of it."""
    from course_lib.command_line.main import main

    Path("02.ipynb").write_bytes(notebook(source))
    with Walk() as walk:
        main(["check", "02.ipynb"])
    return walk


def grade(source: str) -> Walk:
    """Run `course grade` on one notebook; its workers are no part of it."""
    from course_lib.command_line.main import main

    Path("in").mkdir()
    Path("in", "anna.ipynb").write_bytes(notebook(source))
    with Walk() as walk:
        main(["grade", "in", "--exercise", ID, "--out", "out"])
    return walk


def judge(source: str) -> Walk:
    """Judge one notebook as a worker of `course grade` does."""
    from course_lib.grading.judging.isolation import best_level
    from course_lib.grading.judging.judge import Judge
    from course_lib.grading.judging.rules import Rules

    with Judge(Rules(best_level(), 0, exercises=[ID])) as judge, Walk() as walk:
        judge.entry(notebook(source))
    return walk


# each with the status of the answer that is on it
WALKS: dict[str, tuple[Callable[[str], Walk], str]] = {
    "check in a notebook, right": (check, "passed"),
    "check in a notebook, known mistake": (check, "known mistake"),
    "check in a notebook, wrong": (check, "wrong"),
    "course check FILE, right": (course_check, "passed"),
    "course check FILE, wrong": (course_check, "wrong"),
    "course grade, the parent": (grade, "passed"),
    "course grade, the judge": (judge, "passed"),
}


def main() -> None:
    """Print the table, a process for each walk; or of one walk that is asked for, the files."""
    parser = argparse.ArgumentParser(prog="python -m tests.walk", description=__doc__)
    parser.add_argument("walk", nargs="?", choices=WALKS, help="print the files of this one")
    name = parser.parse_args().walk
    if not name:
        print(ROW.format("", "files", "lines", "moves", "parsed", "each", "exercises"))
        for each in WALKS:
            command = [sys.executable, "-m", "tests.walk", each]
            found = subprocess.run(command, capture_output=True, text=True)
            *_, row = found.stdout.splitlines() or [found.stderr]
            print(row)
        return
    from course_lib.answers.source import define
    from course_lib.exercises import verdict

    walk, status = WALKS[name]
    quiet = contextlib.redirect_stdout(StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), quiet:
        gone = walk(ANSWERS[status])
        found = verdict(ID, define(ANSWERS[status], "softmax")).status
    assert found == status, f"the answer of this walk is {found}"
    for file, calls in gone.files.most_common():
        print(f"{Path(file).relative_to(PACKAGE)!s:<50}{calls:>8}")
    print(ROW.format(name, *gone.row()))


if __name__ == "__main__":
    main()
