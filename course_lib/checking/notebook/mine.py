"""Whose a component is that a page goes on with: the learner's, or the library's."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib.answers.source import Source, define, forbidden_in
from course_lib.checking.catalogue import load
from course_lib.checking.exercise import Exercise
from course_lib.checking.forbidden import DOORS
from course_lib.checking.notebook import session
from course_lib.files.workspace import Workspace

NOT_PASSED = "the library's, until yours has passed"

given_out: list[Any] = []  # answers that `mine` has returned
_named: dict[str, list[Exercise]] = {}  # of which exercises `mine` has still to say whose they are


def mine(exercise_id: str) -> Callable:
    """Return the learner's passed answer, or the library's where there is none, and say which.

    A cell says it once, of all that it has asked for.
    """
    exercise = load(exercise_id)
    whose, answer = _whose(exercise)
    if sys.stdout:  # a check that runs the cell anew has none
        _named.setdefault(whose, []).append(exercise)
        session.at_end(_say_whose)
    return answer


def _whose(exercise: Exercise) -> tuple[str, Callable]:
    """Return in words whose answer a page goes on with, and the answer."""
    workspace = Workspace.find()
    if not workspace:
        return f"the library's, since {Path.cwd().name}/ keeps no answers", exercise.reference
    source = workspace.answer(exercise.id)
    if source is None:
        return NOT_PASSED, exercise.reference
    # what was kept before this was refused would call itself
    if doors := forbidden_in(Source(source), {}, DOORS):
        door = doors[0].rpartition(".")[2]
        whose = f"the library's; yours calls `{door}`: write it anew, and check it"
        return whose, exercise.reference
    try:
        answer = define(source, exercise.name)
    except Exception as error:
        return f"the library's; yours cannot be executed any more ({error})", exercise.reference
    given_out.append(answer)
    return "your own", answer


def _say_whose() -> None:
    """Print for each name whose it is: those of one kind in one line."""
    for whose, exercises in _named.items():
        names = ", ".join(dict.fromkeys(x.name for x in exercises))
        if whose == NOT_PASSED:
            pages = sorted({x.lesson for x in exercises})
            whose += f" in {', '.join(pages)}"
        print(f"{names}: {whose}")
    _named.clear()
