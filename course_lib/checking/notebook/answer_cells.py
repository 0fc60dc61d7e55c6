"""A learner's notebook read as answers, without running it.

An answer is the last function, class or lambda of its exercise's name, or what the exercise's own
cell gives this name to. With it go the statements that it needs (see `statements`).
"""

import ast
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from course_lib.answers.answer import Answer
from course_lib.answers.source import Source, define_on, forbidden_in, names_in
from course_lib.checking import forbidden
from course_lib.checking.catalogue import ids, load, module
from course_lib.checking.likeness import is_library
from course_lib.checking.notebook.solution_text import of_lesson, standalone
from course_lib.checking.notebook.statements import Cell, Notebook, Statement
from course_lib.checking.verdict import Verdict, judge, sentence, untried, unwritten
from course_lib.files.course_map import Outline, lesson_of


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
    banned = (*load(exercise.id).banned, *forbidden.MACHINERY)
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
