"""The library's own code as text that can be pasted: into a notebook, or beside an answer."""

import ast
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from course_lib.answers.source import Source, names_bound, self_contained, source_of
from course_lib.checking.catalogue import outlines
from course_lib.checking.exercise import Exercise
from course_lib.files.course_map import lesson_of


def solution_text(exercise: Exercise, code: str = "") -> str:
    """Return the reference, behind those of its helpers that a notebook of this code lacks."""
    page, number = exercise.lesson, lesson_of(exercise.lesson)
    # an exploration's notebook defines nothing of its lesson's
    known = [x for x in outlines() if x.lesson == page or lesson_of(x.lesson) < number]
    own_names = vars(sys.modules[exercise.module])
    # another function of the library may have an exercise's name
    given = {x.name for x in known if _home(own_names.get(x.name)) in (None, x.module)}
    given |= set(re.findall(r"(?<![\w.])\w+", code)) - ({x.name for x in known} - given)
    text = self_contained(exercise.reference, of_lesson(exercise.lesson), given)
    own = source_of(exercise.reference)
    # with nothing but imports before it, it stands as it does in the library
    return text if _helpers(text) - {exercise.name} else own


@cache
def standalone(exercise: Exercise) -> Source:
    """Return a text that defines an exercise's name as the library does."""
    return Source(self_contained(exercise.reference, of_lesson(exercise.lesson)))


def of_lesson(lesson: str) -> Callable[[str], bool]:
    """Return what tells whether a module of the course is not of a lesson before that of a page."""
    number = lesson_of(lesson)
    earlier = {x.module for x in outlines() if lesson_of(x.lesson) < number}
    outside = {x.module for x in outlines()}

    def is_inlined(module: str) -> bool:
        return module not in earlier and (module.startswith("course_lib.") or module in outside)

    return is_inlined


def _home(value: Any) -> str | None:
    return getattr(value, "__module__", None)


def _helpers(text: str) -> set[str]:
    statements = (x for x in ast.parse(text).body if not isinstance(x, ast.Import | ast.ImportFrom))
    return {name for x in statements for name in names_bound(x)}
