"""A learner's notebook read as answers, without running it.

An answer is the last function, class or lambda of its exercise's name, or what the exercise's own
cell gives this name to. With it go the statements that it needs (see `statements`).
"""

import ast
import contextlib
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from course_lib.answers.answer import Answer
from course_lib.answers.source import Source, define_on
from course_lib.checking import ready_made
from course_lib.checking.catalogue import ids, load, module, outlines
from course_lib.checking.likeness import is_library
from course_lib.checking.notebook.solution_text import of_lesson, standalone
from course_lib.checking.notebook.statements import Notebook, Statement, statements
from course_lib.checking.run.source_names import forbidden_in, names_in
from course_lib.checking.verdict import Verdict, judge, sentence, untried, unwritten
from course_lib.files import ipynb
from course_lib.files.course_map import Outline, lesson_of
from course_lib.files.ipynb import NotANotebook

CELL_MAGICS_OF_PYTHON = ("%%capture", "%%prun", "%%time", "%%timeit")


class Holder(Answer, Protocol):
    """A handle that takes one answer after another, such as `process.ChildProcess`."""

    def hold(self, source: str, name: str, others: Iterable[tuple[str, str]] = ()) -> None:
        """Let `name`, defined by `source` on `others`, be the answer from now on."""


@dataclass(frozen=True)
class Attempt:
    """The answer to one exercise: its source, or a sentence about why there is none.

    One that is not attempted has neither: it is a stub, or there is no cell. `places` holds, for
    each line of the source, the cell and the line there that it comes from, counted from 1.
    `stands_on` are the answers to earlier exercises of the lesson that this one takes by `mine`, or
    that are not to be had in the notebook: each has a namespace of its own. `borrowed` are those
    that are the library's. What else it reads is in its source; `along` are exercises among that.
    """

    exercise: Outline
    source: Source | None = None
    problem: str | None = None
    places: tuple[tuple[int, int], ...] = ()
    stands_on: tuple["Attempt", ...] = ()
    borrowed: tuple[Outline, ...] = ()
    along: tuple[Outline, ...] = ()
    without: Callable[[Collection[str]], "Attempt"] | None = None

    def borrowing(self, failed: Collection[Outline]) -> "Attempt":
        """Return this attempt on the library's version of what has failed, or is not written."""
        wrong = {x.name for x in self.along if x in failed}
        found = self.without(wrong) if wrong and self.without else self
        lent = [
            x.borrowing(failed)
            if x.source and x.exercise not in failed
            else Attempt(x.exercise, standalone(load(x.exercise.id)), borrowed=(x.exercise,))
            for x in found.stands_on
        ]
        borrowed = dict.fromkeys(y for x in lent for y in x.borrowed)
        return replace(found, stands_on=tuple(lent), borrowed=tuple(borrowed))

    def whole(self) -> str | None:
        """Return the source behind those of the others, as one text."""
        return self.source and "\n".join([*(x for x, _ in self.others()), self.source])

    def written(self) -> list[Source]:
        """List all sources of the learner's own that this runs on, its own the last."""
        own = [x for x in self.stands_on if x.exercise not in x.borrowed]
        return [*(y for x in own for y in x.written()), *([self.source] if self.source else [])]

    def others(self) -> list[tuple[Source, str]]:
        """List source and name of all that this stands on, each after what it stands on itself."""
        found = [
            y
            for x in self.stands_on
            for y in [*x.others(), (x.source or Source(""), x.exercise.name)]
        ]
        return list(dict.fromkeys(found))

    def define(self) -> Any:
        """Execute the source in this process and return the answer. Raises what it raises."""
        with contextlib.redirect_stdout(None):
            return define_on(self.others(), self.source or "", self.exercise.name)


@dataclass(frozen=True)
class Submission:
    """The attempts of a notebook by id, in the order of the lessons, and remarks on its cells."""

    attempts: dict[str, Attempt]
    remarks: list[str]


@dataclass(frozen=True)
class Cell:
    """A cell of code: its place in the notebook, and the exercise that it is marked with."""

    number: int
    text: str
    exercise: str | None
    statements: list[Statement]
    problem: str | None

    def answer(self, exercise: Outline) -> Statement | None:
        """Return what gives the exercise's name its last value, but for what changes that."""
        name, own = exercise.name, self.exercise == exercise.id
        named = [x for x in self.statements if name in x.binds and not x.is_mine]
        made = [x for x in named if x.defines or (own and name not in x.reads)]
        return made[-1] if made else None

    def is_for(self, exercise: Outline) -> bool:
        """Tell whether an answer stands here, or would if the cell could be read."""
        if self.problem is None:
            return self.answer(exercise) is not None
        header = rf"^(def|class)\s+{exercise.name}\b"
        return self.exercise == exercise.id or bool(re.search(header, self.text, re.MULTILINE))


def read(path: Path) -> Submission:
    """Read the answers out of a notebook. Raises NotANotebook."""
    return find_answers(ipynb.read(path), str(path))


def find_answers(
    notebook: dict, name: str, exercises: list[Outline] | None = None, alone: bool = False
) -> Submission:
    """Find the answers to these exercises, or to those that the notebook holds.

    With `alone` there is no workspace whose answers `mine` could give: a name that the notebook
    takes from there stands for its own definition. Raises NotANotebook where there is none.
    """
    cells = [
        read_cell(number, ipynb.text(cell), ipynb.exercise(cell))
        for number, cell in enumerate(notebook["cells"], start=1)
        if cell["cell_type"] == "code"
    ]
    held = _exercises(notebook, cells)
    asked = exercises or held
    if not asked:
        raise NotANotebook(f"{name} holds no exercise of this course.")
    misplaced = {x.id: said for x in asked if (said := _not_code(x, notebook))}
    attempts = attempts_in(cells, asked, held, alone, misplaced)
    remarks = [f"{cell.problem}; nothing in that cell counts." for cell in cells if cell.problem]
    said = (_remark(x.exercise, cells, x.problem) for x in attempts.values())
    return Submission(attempts, [*remarks, *filter(None, said)])


def attempts_in(
    cells: list[Cell],
    asked: list[Outline],
    held: list[Outline],
    alone: bool,
    misplaced: Mapping[str, str],
) -> dict[str, Attempt]:
    """Find in cells the answers to what is asked, among those that their notebook holds.

    `misplaced` says of an exercise in which other place its answer is, if it is in no such cell.
    """
    order = ids()
    every = sorted({x.id: x for x in [*asked, *held]}.values(), key=lambda x: order.index(x.id))
    places = {x.id: [cell for cell in cells if cell.is_for(x)] for x in every}
    own = {x.name for x in every if places[x.id] or x in held} if alone else ()
    whole = Notebook([statement for cell in cells for statement in cell.statements], own)
    attempts: dict[str, Attempt] = {}
    for x in every:
        before = [y for y in attempts.values() if _same_lesson(y.exercise, x)]
        attempts[x.id] = (
            _attempt(x, places, whole, before)
            if places[x.id]
            else Attempt(x, problem=_renamed(x, cells) or misplaced.get(x.id))
        )
    return {x.id: attempts[x.id] for x in every if x in asked}


def another_page(notebook: dict, exercises: list[Outline]) -> str | None:
    """Say so of a notebook that is of another lesson than all of these exercises, if they are any.

    An older one may still hold what has moved to an exploration.
    """
    own, pages = ipynb.lesson(notebook), {x.lesson for x in exercises}
    held = {ipynb.exercise(cell) for cell in notebook["cells"]}
    if not own or not pages or own in pages or not held.isdisjoint(x.id for x in exercises):
        return None
    return f"This is the notebook of {own}: what is graded here is {' and '.join(sorted(pages))}."


def verdicts(submission: Submission, handle: Holder) -> Iterator[Verdict]:
    """Judge each attempt through a handle: what one of them does costs that one alone."""
    failed: list[Outline] = []
    for attempt in submission.attempts.values():
        verdict = judge_attempt(attempt.borrowing(failed), handle)
        if verdict.status != "passed":
            failed.append(attempt.exercise)
        yield verdict


def judge_attempt(attempt: Attempt, handle: Holder, seed: int = 0) -> Verdict:
    """Judge one attempt through a handle, and say so if it has borrowed from the library."""
    if not attempt.source:
        return unanswered(attempt)
    handle.hold(attempt.source, attempt.exercise.name, attempt.others())
    verdict = _placed(judge(load(attempt.exercise.id), handle, seed), attempt.places)
    if not attempt.borrowed or verdict.status == "not attempted":
        return verdict
    names = " and ".join(f"`{x.name}`" for x in attempt.borrowed)
    own = "yours has" if len(attempt.borrowed) == 1 else "yours have"
    note = f"(Judged on the library's {names}: {own} not passed.)"
    return replace(verdict, message=f"{sentence(verdict.message)} {note}")


def forbidden_name(attempt: Attempt) -> str | None:
    """Return a function that an attempt or its helpers name, and may not call, if there is one."""
    exercise = attempt.exercise
    if not attempt.source:
        return None
    banned = (*load(exercise.id).banned, *ready_made.MACHINERY)
    found = next((y for x in attempt.written() for y in forbidden_in(x, {}, banned)), None)
    # the solution may stand on helpers that no answer may call
    is_ours = found and is_library(attempt.source, exercise.name, exercise.id)
    return None if is_ours else found


def warning(attempt: Attempt) -> str | None:
    """Say of an attempt that has passed why it would not if it were graded, if so."""
    if name := forbidden_name(attempt):
        return _graded(f"this calls `{name}`, which you build here yourself.")
    packages = {module(x).partition(".")[0] for x in ids()}
    for given in names_in(attempt.source or Source(""), {}).imports:
        ours = given.target.partition(".")[0] in packages
        if not ours or given.target.startswith("course_lib.exercises"):
            continue
        if of_lesson(attempt.exercise.lesson)(given.target):
            return _graded(f"`{given.name}` is of {given.target}, which is not to be had there.")
    return None


def _graded(reason: str) -> str:
    return f"Passes here; graded, it would not: {sentence(reason)}"


def is_alone(attempt: Attempt) -> bool:
    """Return True if it has named imports and the answer alone: it has been judged by now."""
    if attempt.stands_on or not attempt.source:
        return False
    *before, last = attempt.source.tree.body
    return isinstance(last, ast.FunctionDef | ast.ClassDef) and all(
        isinstance(x, ast.Import | ast.ImportFrom) and x.names[0].name != "*" for x in before
    )


def unanswered(attempt: Attempt) -> Verdict:
    """Return the verdict on an attempt without a source: there is nothing to try."""
    exercise = attempt.exercise
    if attempt.problem:
        return untried(exercise.id, exercise.points, "error", attempt.problem)
    return untried(exercise.id, exercise.points, "not attempted", unwritten(exercise))


def _placed(verdict: Verdict, places: tuple[tuple[int, int], ...]) -> Verdict:
    """Count the line of an error as its cell does."""
    failure = verdict.failure
    error = failure and failure.error
    if not failure or not error or not error.line or not 0 < error.line <= len(places):
        return verdict
    cell, line = places[error.line - 1]
    placed = replace(error, line=line, text=f"{error.text}  (in cell {cell})")
    return replace(verdict, failure=replace(failure, error=placed))


def _exercises(notebook: dict, cells: list[Cell]) -> list[Outline]:
    """List the exercises of a notebook: its page's, or those of its cells, or of its names.

    An older notebook may hold some that have moved from its lesson to an exploration, or back.
    """
    marked, page = {cell.exercise for cell in cells}, ipynb.lesson(notebook) or ""
    every = outlines()
    own = [x for x in every if x.id in marked]
    moved = [x for x in own if lesson_of(x.lesson) == lesson_of(page)]
    found = [x for x in every if x.lesson == page or x in moved] or own
    return found or [x for x in every if any(cell.is_for(x) for cell in cells)]


def _attempt(
    exercise: Outline, places: Mapping[str, list[Cell]], notebook: Notebook, before: list[Attempt]
) -> Attempt:
    last = places[exercise.id][-1]
    if last.problem:
        return Attempt(exercise, problem=sentence(f"This code cannot be executed: {last.problem}"))
    answer = last.answer(exercise)
    if not answer:
        return Attempt(exercise)
    # what is handed out broken is tried all the same: its cases show what is to be mended
    written = Source(answer.text, ast.Module([answer.node], []))
    untouched = not exercise.broken and written.is_stub(exercise.method)
    if untouched and not list(notebook.patches(answer, exercise.name)):
        return Attempt(exercise)
    others = {x.exercise.name: _made(x.exercise, places[x.exercise.id], notebook) for x in before}

    def gathered(apart: Collection[str]) -> Attempt:
        needed, given, along = notebook.needed(answer, exercise.name, others, apart)
        lines = [
            (line, (statement.cell, statement.line + number))
            for statement in needed
            for number, line in enumerate(statement.text.split("\n"))
        ]
        return Attempt(
            exercise,
            source=Source("".join(f"{line}\n" for line, _ in lines)),
            places=tuple(place for _, place in lines),
            stands_on=tuple(x for x in before if x.exercise.name in given),
            along=tuple(x.exercise for x in before if x.exercise.name in along),
            without=gathered,
        )

    return gathered(())


def _made(exercise: Outline, places: list[Cell], notebook: Notebook) -> list[Statement]:
    """List the statements that give an exercise's name its last value; none where none can."""
    answer = places[-1].answer(exercise) if places else None
    return [answer, *notebook.patches(answer, exercise.name)] if answer else []


def _same_lesson(one: Outline, other: Outline) -> bool:
    return lesson_of(one.lesson) == lesson_of(other.lesson)


def _renamed(exercise: Outline, cells: list[Cell]) -> str | None:
    """Say under which name the exercise's own cell defines what it defines."""
    for cell in cells:
        other = [x for x in cell.statements if cell.exercise == exercise.id and x.defines]
        if other:
            name = min(other[-1].binds)
            place = f"Cell {cell.number}, that of {exercise.id},"
            return f"{place} defines `{name}`, not `{exercise.name}`."
    return None


def _not_code(exercise: Outline, notebook: dict) -> str | None:
    """Say which cell holds the answer as text, where it is no cell of code any more."""
    for number, cell in enumerate(notebook["cells"], start=1):
        named = cell.get("metadata", {}).get("exercise") == exercise.id
        if cell["cell_type"] != "code" and named:
            kind = f"of type {cell['cell_type']}"
            return f"Cell {number}, that of {exercise.id}, is {kind}: turn it back into code."
    return None


def _remark(exercise: Outline, cells: list[Cell], problem: str | None) -> str | None:
    """Say in one sentence what is unusual about an exercise's cells."""
    exercise_id, name = exercise.id, exercise.name
    numbers = [str(cell.number) for cell in cells if cell.is_for(exercise)]
    if not numbers and not problem:
        way_back = f"`course reset {exercise_id}` puts the stub back"
        return f"{exercise_id}: no cell defines `{name}`; {way_back}."
    if len(numbers) > 1:
        return f"{exercise_id}: cells {' and '.join(numbers)} define `{name}`; the last one counts."
    return None


# a class hands in the same demonstrations again and again
@lru_cache(maxsize=1024)
def read_cell(number: int, text: str, exercise: str | None) -> Cell:
    """Read the statements of a cell, or the problem that it cannot be read for."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("%%"):
        python = first.split()[0] in CELL_MAGICS_OF_PYTHON
        text = text.replace(first, "", 1) if python else ""
    try:
        tree, text = _parse(text)
        found = list(statements(number, text, tree))
    except (SyntaxError, ValueError, RuntimeError, MemoryError) as error:
        number_there = getattr(error, "lineno", None)
        line = f", line {number_there}" if number_there else ""
        why = str(getattr(error, "msg", error)) or "it takes too much memory to be read"
        problem = f"cell {number}{line} is not Python: {why}"
        if line_there := ipynb.conflict(text):
            problem = f"cell {number} has the marks of a merge conflict, line {line_there}"
        return Cell(number, text, exercise, [], problem)
    return Cell(number, text, exercise, found, None)


def _parse(text: str) -> tuple[ast.Module, str]:
    """Parse the code of a cell; what is not Python is what IPython makes Python of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\s" in a docstring is no concern of a check
        try:
            return ast.parse(text), text
        except SyntaxError:
            text = _as_python(text)
            return ast.parse(text), text


def _as_python(text: str) -> str:
    """Read a cell by IPython's own grammar, without its magics and shell lines: each is a None.

    What `%time` runs stays. Raises SyntaxError.
    """
    # takes half a second, and few cells need it
    from IPython.core.inputtransformer2 import TransformerManager

    body = re.sub(r"\A(?:[^\S\n]*\n)+", "", text)  # IPython leaves these lines out
    above = text.count("\n") - body.count("\n")
    lines = ("\n" * above + TransformerManager().transform_cell(body)).encode().split(b"\n")
    tree = ast.parse(b"\n".join(lines))
    run = {x.value: code for x in ast.walk(tree) if isinstance(x, ast.Expr) if (code := _timed(x))}
    calls = [x for x in ast.walk(tree) if _is_ipythons(x) and x.lineno == x.end_lineno]
    for call in sorted(calls, key=lambda x: x.col_offset, reverse=True):
        line = lines[call.lineno - 1]
        written = run.get(call, "None").encode()
        lines[call.lineno - 1] = line[: call.col_offset] + written + line[call.end_col_offset :]
    return b"\n".join(lines).decode()


def _timed(statement: ast.Expr) -> str | None:
    """Return the code of `%time code`."""
    match statement.value:
        case ast.Call(ast.Attribute(), [ast.Constant("time"), ast.Constant(str(code))]):
            return code if _is_ipythons(statement.value) else None
    return None


def _is_ipythons(node: ast.AST) -> TypeGuard[ast.Call]:
    """Tell whether this is a call of IPython, which a magic or a shell line stands for."""
    match node:
        case ast.Call(ast.Attribute(ast.Call(ast.Name("get_ipython")))):
            return True
    return False
