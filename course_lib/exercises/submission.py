"""A learner's notebook read as answers, without running it.

Of its cells only imports, definitions, constants and `name = mine(...)` count. An answer is the
last function or class of its exercise's name, with the statements that it needs.
"""

import ast
import contextlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from course_lib import ipynb
from course_lib.exercises.answer import Answer, Description, Reply, Request
from course_lib.exercises.catalogue import ids, load
from course_lib.exercises.exercise import Exercise
from course_lib.exercises.source import define
from course_lib.exercises.verdict import Verdict, judge
from course_lib.ipynb import NotANotebook

MAGIC = re.compile(r"^(\s*)([\w, ]+=\s*)?[%!].*|^(\s*)(\?+\S+|[\w.]+\?+)\s*$")
PYTHON_CELL_MAGICS = ("time", "timeit", "capture", "prun")
BLANK = "pass"


class Holder(Answer, Protocol):
    """A handle that can be given one answer after another, such as `child.ChildProcess`."""

    def hold(self, source: str, name: str) -> None:
        """Let `name`, defined by `source`, be the answer from now on."""


@dataclass(frozen=True)
class Attempt:
    """The answer to one exercise: source that defines it, or the sentence why there is none.

    `places` tells from which cell and line, both counted from 1, each line of the source comes.
    """

    exercise: Exercise
    source: str | None = None
    problem: str | None = None
    places: tuple[tuple[int, int], ...] = ()

    def define(self) -> Any:
        """Execute the source in this process and return the answer. Raises what it raises."""
        with contextlib.redirect_stdout(None):
            return define(self.source, self.exercise.name)


@dataclass(frozen=True)
class Submission:
    """The attempts of a notebook by id, in the order of the lessons, and remarks on its cells."""

    attempts: dict[str, Attempt]
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Statement:
    cell: int
    line: int
    text: str
    binds: frozenset[str]
    reads: frozenset[str]
    kind: type


@dataclass
class _Cell:
    number: int
    text: str
    exercise: str | None
    problem: str | None = None
    statements: list[_Statement] = field(default_factory=list)

    def defines(self, id: str, name: str) -> bool:
        """Tell whether the answer of this name stands here, as far as the cell can be read."""
        if self.problem:
            header = re.search(rf"^(def|class)\s+{name}\b", self.text, re.MULTILINE)
            return self.exercise == id or bool(header)
        return any(_is_definition(statement, name) for statement in self.statements)


def read(path: Path) -> Submission:
    """Read the answers out of a notebook. Raises NotANotebook."""
    notebook = ipynb.read(path)
    cells = [
        _read_cell(number, ipynb.text(cell), ipynb.exercise(cell))
        for number, cell in enumerate(notebook["cells"], start=1)
        if cell["cell_type"] == "code"
    ]
    asked = _asked(ipynb.lesson(notebook), cells)
    if not asked:
        raise NotANotebook(f"{path} holds no exercise of this course.")
    remarks = [
        f"{cell.problem}, so nothing in that cell counts." for cell in cells if cell.problem
    ]
    attempts = {}
    for id in asked:
        attempts[id], remark = _attempt(id, cells)
        remarks += [remark] if remark else []
    return Submission(attempts, remarks)


def verdicts(submission: Submission, handle: Holder) -> Iterator[Verdict]:
    """Judge each attempt through a handle. What one of them does costs that one alone."""
    for id, attempt in submission.attempts.items():
        if attempt.source is None:
            found = judge(attempt.exercise, _Unreadable(attempt.problem))
            yield found if attempt.problem else replace(found, status="not attempted")
        else:
            handle.hold(attempt.source, attempt.exercise.name)
            yield _placed(judge(attempt.exercise, handle), attempt)


class _Unreadable:
    """Stands for an answer that cannot be read."""

    def __init__(self, problem: str | None):
        self._problem = problem

    def describe(self) -> Description:
        return Description("error", self._problem)

    def run(self, request: Request) -> Reply:
        raise AssertionError("an answer that cannot be read is not called")


def _placed(verdict: Verdict, attempt: Attempt) -> Verdict:
    """Name the line of an error as its cell counts it."""
    error = verdict.failure and verdict.failure.error
    if not error or not error.line:
        return verdict
    cell, line = attempt.places[error.line - 1]
    error = replace(error, line=line, text=f"{error.text}  (in cell {cell})")
    return replace(verdict, failure=replace(verdict.failure, error=error))


def _asked(lesson: str | None, cells: list[_Cell]) -> list[str]:
    """List the exercises of a notebook: its lesson's, or those of its cells, or of its names."""
    marked = {cell.exercise for cell in cells}
    by_lesson = [id for id in ids() if load(id).lesson == lesson]
    by_cell = [id for id in ids() if id in marked]
    return (
        by_lesson
        or by_cell
        or [id for id in ids() if any(cell.defines(id, load(id).name) for cell in cells)]
    )


def _attempt(id: str, cells: list[_Cell]) -> tuple[Attempt, str | None]:
    """Find the answer to an exercise, and what is to be said about its cells."""
    exercise = load(id)
    defining = [cell for cell in cells if cell.defines(id, exercise.name)]
    if not defining:
        return Attempt(exercise), (
            f"{id}: no cell defines `{exercise.name}`; `course reset {id}` puts the stub back."
        )
    remark = None
    if len(defining) > 1:
        numbers = " and ".join(str(cell.number) for cell in defining)
        remark = f"{id}: cells {numbers} define `{exercise.name}`; the last one counts."
    last = defining[-1]
    if last.problem:
        return Attempt(exercise, problem=last.problem), remark
    source, places = _source(exercise.name, last, cells)
    return Attempt(exercise, source, places=places), remark


def _source(name: str, cell: _Cell, cells: list[_Cell]) -> tuple[str, tuple]:
    """Collect the answer of this name in a cell, after all that it needs, wherever that stands."""
    answer = [x for x in cell.statements if _is_definition(x, name)][-1]
    statements = [statement for each in cells for statement in each.statements]
    needed = [x for x in statements if "*" in x.binds]
    bound, to_read = {name}, sorted(answer.reads)
    while to_read:
        if (used := to_read.pop()) in bound:
            continue
        bound.add(used)
        binding = [x for x in statements if used in x.binds]
        # what the notebook meant when the answer was made, or else what came next
        known = [x for x in binding if x.cell <= cell.number][-1:] or binding[:1]
        needed += known
        to_read += [read for x in known for read in sorted(x.reads)]
    order = {id(x): place for place, x in enumerate(statements)}
    unique = {order[id(x)]: x for x in needed if x is not answer}
    imports = [x for _, x in sorted(unique.items()) if x.kind in (ast.Import, ast.ImportFrom)]
    others = [x for _, x in sorted(unique.items()) if x not in imports]
    lines, places = [], []
    for statement in (*imports, *others, answer):
        for offset, line in enumerate(statement.text.split("\n")):
            lines.append(line)
            places.append((statement.cell, statement.line + offset))
    return "\n".join(lines) + "\n", tuple(places)


def _read_cell(number: int, text: str, exercise: str | None) -> _Cell:
    text, cell = _without_cell_magic(text), _Cell(number, text, exercise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python warns of is no concern of the reader's
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            text = MAGIC.sub(rf"\1\3{BLANK}", text)
            text = "\n".join(MAGIC.sub(rf"\g<1>\g<3>{BLANK}", x) for x in text.split("\n"))
            try:
                tree = ast.parse(text)
            except SyntaxError as error:
                cell.problem = f"cell {number}, line {error.lineno}: {error.msg}"
                return cell
            except (ValueError, RecursionError, MemoryError) as error:
                cell.problem = f"cell {number}: {error}"
                return cell
    ...
