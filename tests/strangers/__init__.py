"""Answers by people who had not read the checks: wrong ones, each with its fault, and right ones.

Nobody tunes a check to these cells. `python -m tests.strangers first` says how they are judged.

Whether a sentence is true of its answer, and helps, is nothing that a program can tell: it is read.
A reading is in `first.tsv`, `second.tsv` or `third.tsv`, beside the sentence that was read; where
a check says something else today, that is unread.
"""

import csv
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from nbformat import NotebookNode

from course_lib.answers.process import ChildProcess
from course_lib.checking.catalogue import ids, load
from course_lib.checking.notebook.answers import find_answers, judge_attempt
from course_lib.checking.verdict import Verdict
from lessons.build import build, lesson_files

HERE = Path(__file__).parent
CELL = re.compile(r"^# %% (\S+) \| (right|wrong) \| (.+)\n", re.MULTILINE)


CLASSES = {
    "accepted rightly": "right answers that pass",
    "refused wrongly": "right answers that do not",
    "refused by the rules": "right numbers, by a function that the exercise forbids",
    "named": "wrong answers whose mistake is named: by the bank, or because a call is forbidden",
    "shown": "wrong answers whose mistake is shown by what differs, where, or by the exception",
    "unexplained": "wrong answers refused with nothing that helps",
    "misdiagnosed": "wrong answers of which something untrue is said",
    "accepted wrongly": "wrong answers that pass",
    "within the task": "answers said to be wrong that keep all that the task asks, and pass",
    "unread": "wrong answers of which something is said that nobody has read",
}


@dataclass(frozen=True)
class Try:
    """One answer: its exercise, whether it is right, what is said to be wrong, and its code."""

    exercise: str
    right: bool
    said: str
    code: str


def tries(people: str) -> Iterator[Try]:
    """Yield the answers of a set: "first", "second" or "third"."""
    for file in sorted((HERE / people).glob("*.py")):
        _, *parts = CELL.split(file.read_text())
        for exercise, kind, said, code in zip(*[iter(parts)] * 4, strict=True):
            yield Try(exercise, kind == "right", said.strip(), code)


@cache
def _notebook(lesson: str) -> NotebookNode:
    [file] = lesson_files([lesson])
    return build(file)


def notebook_of(one: Try) -> NotebookNode:
    """Put an answer into the cell of its exercise, in its lesson's notebook."""
    notebook = deepcopy(_notebook(load(one.exercise).lesson))
    [cell] = [x for x in notebook.cells if x.metadata.get("exercise") == one.exercise]
    cell.source = one.code
    return notebook


def judged(one: Try, handle: ChildProcess, seed: int = 0) -> Verdict:
    """Judge an answer as `course check` does."""
    lesson = load(one.exercise).lesson
    exercises = [x for x in map(load, ids()) if x.lesson == lesson]
    submission = find_answers(notebook_of(one), one.exercise, exercises, alone=True)
    attempt = submission.attempts[one.exercise]
    # the other cells of the notebook are stubs, in whose place `mine` gives the library's version
    attempt = attempt.borrowing(attempt.neighbours)
    return judge_attempt(replace(attempt, borrowed=()), handle, seed)


def one_line(text: str) -> str:
    """Put what is said of an answer on one line."""
    return " ".join(text.split())


def readings(people: str) -> dict[tuple[str, str, str], str]:
    """Return how each sentence was read, by exercise, fault and sentence."""
    with (HERE / f"{people}.tsv").open(encoding="utf8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {(row["exercise"], row["fault"], row["said"]): row["class"] for row in rows}


def classified(one: Try, verdict: Verdict, read: dict[tuple[str, str, str], str]) -> str:
    """Say what a verdict is worth, as far as somebody has read it."""
    passed = verdict.status == "passed"
    if one.right and verdict.status == "forbidden":
        return "refused by the rules"
    if one.right:
        return "accepted rightly" if passed else "refused wrongly"
    said = read.get((one.exercise, one.said, one_line(verdict.message)))
    return said or ("accepted wrongly" if passed else "unread")
