"""A notebook's file as what a learner hands in: the attempts in it, and what is unusual there."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_lib.checking.catalogue import outlines
from course_lib.checking.notebook.answer_cells import Attempt, Holder, attempts_in, judge_attempt
from course_lib.checking.notebook.statements import Cell, read_cell
from course_lib.checking.verdict import Verdict
from course_lib.files import ipynb
from course_lib.files.course_map import Outline, lesson_of
from course_lib.files.errors import NotANotebook


@dataclass(frozen=True)
class Submission:
    """The attempts of a notebook by id, in the order of the lessons, and remarks on its cells."""

    attempts: dict[str, Attempt]
    remarks: list[str]


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
