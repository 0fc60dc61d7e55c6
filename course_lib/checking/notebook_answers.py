"""A learner's notebook read as answers, without running it.

Of its code only imports, definitions, constants and `name = mine(...)` count. An answer is the
last function or class of its exercise's name, behind the statements that it needs.
"""

import ast
import contextlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from course_lib.answers.answer import Answer
from course_lib.answers.source import define, globals_read, is_stub
from course_lib.checking.catalogue import ids, load
from course_lib.checking.exercise import Exercise
from course_lib.checking.verdict import Verdict, judge, sentence, untried
from course_lib.files import ipynb
from course_lib.files.ipynb import NotANotebook

MAGIC = re.compile(r"^([ \t]*)(?:(?:[\w,][\w, ]*=\s*)?[%!].*|\?+[\w.]+|[\w.]+\?+)$", re.MULTILINE)
CELL_MAGICS_OF_PYTHON = ("%%capture", "%%prun", "%%time", "%%timeit")
IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
KEPT = (*IMPORTS, *DEFINITIONS)


class Holder(Answer, Protocol):
    """A handle that takes one answer after another, such as `process.ChildProcess`."""

    def hold(self, source: str, name: str) -> None:
        """Let `name`, defined by `source`, be the answer from now on."""


@dataclass(frozen=True)
class Attempt:
    """The answer to one exercise: its source, or the problem that it cannot be read for.

    One that is not attempted has neither: it is a stub, or there is no cell. `places` holds, for
    each line of the source, the cell and the line there that it comes from, counted from 1.
    """

    exercise: Exercise
    source: str | None = None
    problem: str | None = None
    places: tuple[tuple[int, int], ...] = ()

    def define(self) -> Any:
        """Execute the source in this process and return the answer. Raises what it raises."""
        with contextlib.redirect_stdout(None):
            return define(self.source or "", self.exercise.name)


@dataclass(frozen=True)
class Submission:
    """The attempts of a notebook by id, in the order of the lessons, and remarks on its cells."""

    attempts: dict[str, Attempt]
    remarks: list[str]


@dataclass(frozen=True, eq=False)
class _Statement:
    cell: int
    line: int
    text: str
    kind: type[ast.stmt]
    binds: frozenset[str]
    reads: frozenset[str]


@dataclass(frozen=True)
class _Cell:
    number: int
    text: str
    exercise: str | None
    statements: list[_Statement]
    problem: str | None

    def answer(self, name: str) -> _Statement | None:
        """Return the last function or class of this name."""
        named = [x for x in self.statements if x.kind in DEFINITIONS and name in x.binds]
        return named[-1] if named else None

    def is_for(self, exercise: Exercise) -> bool:
        """Tell whether an answer stands here, or would if the cell could be read."""
        if self.problem is None:
            return self.answer(exercise.name) is not None
        header = rf"^(def|class)\s+{exercise.name}\b"
        return self.exercise == exercise.id or bool(re.search(header, self.text, re.MULTILINE))

    def without(self, names: set[str]) -> "_Cell":
        """Leave out what takes these names, and no other, from the workspace."""
        left = [x for x in self.statements if x.kind in KEPT or not x.binds <= names]
        return replace(self, statements=left)


def read(path: Path) -> Submission:
    """Read the answers out of a notebook. Raises NotANotebook."""
    return find_answers(ipynb.read(path), str(path))


def find_answers(
    notebook: dict, name: str, exercises: list[Exercise] | None = None, alone: bool = False
) -> Submission:
    """Find the answers to these exercises, or to those that the notebook holds.

    With `alone` there is no workspace whose answers `mine` could give: a name that the notebook
    takes from there stands for its own definition. Raises NotANotebook where there is none.
    """
    cells = [
        _read_cell(number, ipynb.text(cell), ipynb.exercise(cell))
        for number, cell in enumerate(notebook["cells"], start=1)
        if cell["cell_type"] == "code"
    ]
    exercises = exercises or _exercises(ipynb.lesson(notebook), cells)
    if not exercises:
        raise NotANotebook(f"{name} holds no exercise of this course.")
    if alone:
        defined = {x.name for x in exercises if any(cell.is_for(x) for cell in cells)}
        cells = [cell.without(defined) for cell in cells]
    attempts = {exercise.id: _attempt(exercise, cells) for exercise in exercises}
    remarks = [f"{cell.problem}; nothing in that cell counts." for cell in cells if cell.problem]
    remarks += [remark for x in exercises if (remark := _remark(x, cells))]
    return Submission(attempts, remarks)


def verdicts(submission: Submission, handle: Holder) -> Iterator[Verdict]:
    """Judge each attempt through a handle: what one of them does costs that one alone."""
    for attempt in submission.attempts.values():
        yield judge_attempt(attempt, handle)


def judge_attempt(attempt: Attempt, handle: Holder, seed: int = 0) -> Verdict:
    """Judge one attempt through a handle."""
    if not attempt.source:
        return unanswered(attempt, seed)
    handle.hold(attempt.source, attempt.exercise.name)
    return _placed(judge(attempt.exercise, handle, seed), attempt.places)


def unanswered(attempt: Attempt, seed: int = 0) -> Verdict:
    """Return the verdict on an attempt without a source: there is nothing to try."""
    if attempt.problem:
        message = sentence(f"This code cannot be executed: {attempt.problem}")
        return untried(attempt.exercise, "error", message, seed)
    return untried(attempt.exercise, "not attempted", "Nothing is written yet.", seed)


def _placed(verdict: Verdict, places: tuple[tuple[int, int], ...]) -> Verdict:
    """Count the line of an error as its cell does."""
    failure = verdict.failure
    error = failure and failure.error
    if not failure or not error or not error.line or not 0 < error.line <= len(places):
        return verdict
    cell, line = places[error.line - 1]
    placed = replace(error, line=line, text=f"{error.text}  (in cell {cell})")
    return replace(verdict, failure=replace(failure, error=placed))


def _exercises(lesson: str | None, cells: list[_Cell]) -> list[Exercise]:
    """List the exercises of a notebook: its lesson's, or those of its cells, or of its names."""
    every = [load(exercise_id) for exercise_id in ids()]
    marked = {cell.exercise for cell in cells}
    return (
        [x for x in every if x.lesson == lesson]
        or [x for x in every if x.id in marked]
        or [x for x in every if any(cell.is_for(x) for cell in cells)]
    )


def _attempt(exercise: Exercise, cells: list[_Cell]) -> Attempt:
    places = [cell for cell in cells if cell.is_for(exercise)]
    if not places:
        return Attempt(exercise)
    if places[-1].problem:
        return Attempt(exercise, problem=places[-1].problem)
    answer = places[-1].answer(exercise.name)
    if answer is None or is_stub(answer.text, exercise.method):
        return Attempt(exercise)
    statements = _needed(answer, exercise.name, [x for cell in cells for x in cell.statements])
    lines = [
        (line, (statement.cell, statement.line + number))
        for statement in statements
        for number, line in enumerate(statement.text.split("\n"))
    ]
    source = "".join(f"{line}\n" for line, _ in lines)
    return Attempt(exercise, source, places=tuple(place for _, place in lines))


def _remark(exercise: Exercise, cells: list[_Cell]) -> str | None:
    """Say in one sentence what is unusual about an exercise's cells."""
    exercise_id, name = exercise.id, exercise.name
    numbers = [str(cell.number) for cell in cells if cell.is_for(exercise)]
    if not numbers:
        way_back = f"`course reset {exercise_id}` puts the stub back"
        return f"{exercise_id}: no cell defines `{name}`; {way_back}."
    if len(numbers) > 1:
        return f"{exercise_id}: cells {' and '.join(numbers)} define `{name}`; the last one counts."
    return None


def _needed(answer: _Statement, name: str, statements: list[_Statement]) -> list[_Statement]:
    """List the statements that an answer needs: imports, then the others, then itself.

    A name stands for what it was last bound to when the answer's cell ran; failing that, for
    what a later cell binds it to.
    """
    found = {x for x in statements if "*" in x.binds}
    known, wanted = {name}, set(answer.reads)
    while wanted := wanted - known:
        known |= wanted
        for read in list(wanted):
            binding = [x for x in statements if read in x.binds]
            used = [x for x in binding if x.cell <= answer.cell][-1:] or binding[:1]
            found |= set(used)
            wanted |= {x for statement in used for x in statement.reads}
    found.discard(answer)
    ordered = [x for x in statements if x in found]
    ordered.sort(key=lambda x: x.kind not in IMPORTS)
    return [*ordered, answer]


# a class hands in the same demonstrations again and again
@lru_cache(maxsize=1024)
def _read_cell(number: int, text: str, exercise: str | None) -> _Cell:
    first = text.lstrip().partition("\n")[0]
    if first.startswith("%%"):
        python = first.split()[0] in CELL_MAGICS_OF_PYTHON
        text = text.replace(first, "", 1) if python else ""
    try:
        tree, text = _parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        number_there = getattr(error, "lineno", None)
        line = f", line {number_there}" if number_there else ""
        why = str(getattr(error, "msg", error)) or "it takes too much memory to be read"
        problem = f"cell {number}{line} is not Python: {why}"
        return _Cell(number, text, exercise, [], problem)
    lines = text.encode().split(b"\n")
    statements = [_statement(number, lines, node) for node in tree.body if _counts(node)]
    return _Cell(number, text, exercise, statements, None)


def _parse(text: str) -> tuple[ast.Module, str]:
    """Parse the code of a cell, if need be without its magics and shell lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\s" in a docstring is no concern of a check
        try:
            return ast.parse(text), text
        except SyntaxError:
            text = MAGIC.sub(r"\1pass", text)
            return ast.parse(text), text


def _counts(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return _is_literal(node.value) or _is_mine(node.value)
    return isinstance(node, KEPT)


def _is_literal(value: ast.expr | None) -> bool:
    try:
        ast.literal_eval(value or "")
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def _is_mine(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] == "mine"


def _statement(cell: int, lines: list[bytes], node: ast.stmt) -> _Statement:
    decorators = getattr(node, "decorator_list", None)
    line = decorators[0].lineno if decorators else node.lineno
    written = b"\n".join(lines[line - 1 : node.end_lineno])
    if not decorators:  # another statement may stand before it, or behind
        behind = len(lines[(node.end_lineno or line) - 1]) - (node.end_col_offset or 0)
        written = written[node.col_offset : len(written) - behind]
    names = [x for x in ast.walk(node) if isinstance(x, ast.Name)]
    if isinstance(node, IMPORTS):
        binds = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    elif isinstance(node, DEFINITIONS):
        binds = {node.name}
    else:
        binds = {x.id for x in names if isinstance(x.ctx, ast.Store)}
    # a parameter may have the name of something else in the notebook
    reads = globals_read(ast.unparse(node)) if isinstance(node, DEFINITIONS) else set()
    reads = reads or {x.id for x in names}
    return _Statement(cell, line, written.decode(), type(node), frozenset(binds), frozenset(reads))
