"""Answers by people who had not read the checks: wrong ones, each with its fault, and right ones.

Nobody tunes a check to these cells. `python -m tests.strangers first` says how they are judged.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.answers.process import ChildProcess
from course_lib.checking.catalogue import load
from course_lib.checking.notebook_answers import find_answers, judge_attempt
from course_lib.checking.verdict import Verdict
from lessons.build import build, lesson_files

HERE = Path(__file__).parent
CELL = re.compile(r"^# %% (\S+) \| (right|wrong) \| (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Try:
    """One answer: its exercise, whether it is right, what is said to be wrong, and its code."""

    exercise: str
    right: bool
    said: str
    code: str


def tries(people: str) -> Iterator[Try]:
    """Yield the answers of a set, "first" or "second"."""
    for file in sorted((HERE / people).glob("*.py")):
        _, *parts = CELL.split(file.read_text())
        for exercise, kind, said, code in zip(*[iter(parts)] * 4, strict=True):
            yield Try(exercise, kind == "right", said.strip(), code)


def notebook_of(one: Try) -> NotebookNode:
    """Write an answer into its lesson's notebook, behind the cell of imports."""
    exercise = load(one.exercise)
    [file] = lesson_files([exercise.lesson])
    imports = next(cell for cell in build(file).cells if cell.cell_type == "code")
    answer = new_code_cell(one.code, metadata={"exercise": one.exercise})
    return new_notebook(cells=[imports, answer], metadata={"course": {"lesson": exercise.lesson}})


def judged(one: Try, handle: ChildProcess, seed: int = 0) -> Verdict:
    """Judge an answer as `course check` does."""
    submission = find_answers(notebook_of(one), one.exercise, [load(one.exercise)], alone=True)
    return judge_attempt(submission.attempts[one.exercise], handle, seed)
