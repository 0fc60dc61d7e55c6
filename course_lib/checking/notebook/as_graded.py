"""An answer as a grade would read it: in a kernel's cells, and what a grade would say of it."""

import re

from course_lib.checking import catalogue
from course_lib.checking.exercise import Exercise
from course_lib.checking.notebook import cells
from course_lib.checking.notebook.answer_cells import (
    Attempt,
    find_answers,
    forbidden_name,
    read_cell,
)
from course_lib.checking.notebook.solution_text import of_lesson
from course_lib.checking.run.source_names import names_in
from course_lib.checking.verdict import sentence
from course_lib.files.workspace import Workspace


def warning(attempt: Attempt) -> str | None:
    """Say of an attempt that has passed why it would not if it were graded, if so."""
    if name := forbidden_name(attempt):
        return _warning(f"this calls `{name}`, which you build here yourself.")
    packages = {catalogue.module(x).partition(".")[0] for x in catalogue.ids()}
    for given in names_in(attempt.source or "", {}).imports:
        ours = given.target.partition(".")[0] in packages
        if not ours or given.target.startswith("course_lib.exercises"):
            continue
        if of_lesson(attempt.exercise.lesson)(given.target):
            return _warning(f"`{given.name}` is of {given.target}, which is not to be had there.")
    return None


def in_notebook(exercise: Exercise) -> Attempt | None:
    """Find the attempt in what the cells that have been run say now; None where none is for it.

    It stands on the library's version of what has not passed of its page.
    """
    said = cells.said()
    page = [x for x in catalogue.ids() if catalogue.outline(x).lesson == exercise.lesson]
    exercises = [catalogue.load(x) for x in page]
    marks = {number: _exercise(texts, exercises) for number, texts in said.items()}
    if exercise.id not in marks.values():  # a lambda's name, or a partial's
        marks |= {n: exercise.id for n, texts in said.items() if _binds(texts[-1], exercise.name)}
    if exercise.id not in marks.values():
        return None
    notebook = {
        "cells": [
            {
                "cell_type": "code",
                "metadata": {"exercise": marks.get(number)},
                "source": said.get(number, [""])[-1],
            }
            for number in range(1, max(said) + 1)
        ]
    }
    attempts = find_answers(notebook, "This", exercises, alone=True).attempts
    workspace = Workspace.find()
    failed = [
        x
        for x in exercises
        if x is not exercise and workspace and not workspace.record(x.id).passed
    ]
    return attempts[exercise.id].borrowing(failed)


def _exercise(texts: list[str], exercises: list[Exercise]) -> str | None:
    """Return the id of the exercise that a cell is for, or ever was."""
    for text in reversed(texts):
        for x in exercises:
            if re.search(rf"^\s*(def|class)\s+{x.name}\b", text, re.MULTILINE):
                return x.id
    return None


def _binds(text: str, name: str) -> bool:
    """Tell whether a cell gives a name a value, and not one of the library's."""
    return any(
        name in x.binds and not x.is_mine and not x.text.startswith("from course_lib")
        for x in read_cell(0, text, None).statements
    )


def _warning(reason: str) -> str:
    return f"Passes here; graded, it would not: {sentence(reason)}"
