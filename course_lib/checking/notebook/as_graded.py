"""What a grade would say of an answer that passes where the learner tries it."""

import ast
from typing import Any

from course_lib.answers.source import find_source
from course_lib.checking.exercise import Exercise
from course_lib.checking.notebook import cells
from course_lib.checking.notebook.answer_cells import (
    Attempt,
    find_answers,
    forbidden_name,
    read_cell,
)
from course_lib.checking.notebook.solution_text import of_lesson
from course_lib.checking.notebook.time_limit import judged_in_time
from course_lib.checking.trying.source_names import names_in
from course_lib.checking.verdict import sentence


def warning(attempt: Attempt) -> str | None:
    """Say of an attempt that has passed why it would not if it were graded, if so."""
    if name := forbidden_name(attempt):
        return _warning(f"this calls `{name}`, which you build here yourself.")
    is_missing = of_lesson(attempt.exercise.lesson)
    for given in names_in(attempt.source or "", {}).imports:
        if is_missing(given.target) and not given.target.startswith("course_lib.exercises"):
            return _warning(f"`{given.name}` is of {given.target}, which is not to be had there.")
    return None


def in_notebook(exercise: Exercise) -> Attempt | None:
    """Find the attempt in the cells that have been run, if there are any, as a grade would."""
    if not (shell := cells.shell()):
        return None
    # what a cell last gave to the name is what was checked, in whichever cell
    marked = {"cell_type": "code", "metadata": {"exercise": exercise.id}}
    run = [x for x in shell.history_manager.input_hist_raw[1:] if not read_cell(0, x, None).problem]
    notebook = {"cells": [marked | {"source": source} for source in run]}
    return find_answers(notebook, "This", [exercise], alone=True).attempts[exercise.id]


def warning_in_notebook(attempt: Attempt, answer: Any) -> str | None:
    """Say of an attempt in a notebook, whose answer has passed there, what `warning` says."""
    if not attempt.source:
        missing = f"no cell that has run defines `{attempt.exercise.name}`."
        return _warning(attempt.problem or missing)
    if (said := warning(attempt)) or is_alone(attempt.source, answer):
        return said
    try:
        verdict = judged_in_time(attempt.exercise, attempt.define())
    except Exception as error:
        return _warning(f"{type(error).__name__}: {error}")
    return None if verdict.status == "passed" else _warning(verdict.message)


def is_alone(source: str, answer: Any) -> bool:
    """Return True if a source has named imports and the answer alone: it has been judged by now."""
    *before, last = ast.parse(source).body
    imports = all(isinstance(x, ast.Import | ast.ImportFrom) for x in before)
    named = all(alias.name != "*" for x in before for alias in getattr(x, "names", ()))
    return (
        imports
        and named
        and ast.dump(ast.Module([last], [])) == ast.dump(ast.parse(find_source(answer) or ""))
    )


def _warning(reason: str) -> str:
    return f"Passes here; graded, it would not: {sentence(reason)}"
