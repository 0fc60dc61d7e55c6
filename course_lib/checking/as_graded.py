"""What a grade would say of an answer that passes where the learner tries it."""

import sys

from course_lib.answers.answer import InProcess
from course_lib.checking.exercise import Exercise
from course_lib.checking.library import of_lesson
from course_lib.checking.notebook_answers import Attempt, find_answers, read_cell
from course_lib.checking.screen import screened
from course_lib.checking.source_names import names_in
from course_lib.checking.verdict import judge, sentence


def warning(attempt: Attempt) -> str | None:
    """Say of an attempt that has passed why it would not if it were graded, if so."""
    if refused := screened(attempt.written, attempt.exercise):
        return _warning(refused)
    is_missing = of_lesson(attempt.exercise.lesson)
    for given in names_in(attempt.written, {}).imports:
        if is_missing(given.target) and not given.target.startswith("course_lib.exercises"):
            return _warning(f"`{given.name}` is of {given.target}, which is not to be had there.")
    return None


def warning_in_notebook(exercise: Exercise) -> str | None:
    """Say the same of the answer in the cells that have been run, if this is a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if not shell:
        return None
    # what a cell last gave to the name is what was checked, in whichever cell
    marked = {"cell_type": "code", "metadata": {"exercise": exercise.id}}
    run = [x for x in shell.history_manager.input_hist_raw[1:] if not read_cell(0, x, None).problem]
    cells = [marked | {"source": source} for source in run]
    attempt = find_answers({"cells": cells}, "This", [exercise], alone=True).attempts[exercise.id]
    if not attempt.source:
        return _warning(attempt.problem or f"no cell that has run defines `{exercise.name}`.")
    if said := warning(attempt):
        return said
    try:
        verdict = judge(exercise, InProcess(attempt.define()))
    except Exception as error:
        return _warning(f"{type(error).__name__}: {error}")
    return None if verdict.status == "passed" else _warning(verdict.message)


def _warning(reason: str) -> str:
    return f"Passes here; graded, it would not: {sentence(reason)}"
