"""The library's own code as text that can be pasted: into a notebook, or beside an answer."""

import ast
import re
import sys
from collections.abc import Callable
from functools import cache

from course_lib.answers.source import names_bound, self_contained, source_of
from course_lib.checking.catalogue import ids, load
from course_lib.checking.exercise import Exercise
from course_lib.files.course_map import lesson_of


def solution_text(exercise: Exercise, code: str = "") -> str:
    """Return the reference, behind those of its helpers that a notebook of this code lacks."""
    page, number = exercise.lesson, lesson_of(exercise.lesson)
    # an exploration's notebook defines nothing of its lesson's
    known = [x for x in map(load, ids()) if x.lesson == page or lesson_of(x.lesson) < number]
    own_names = vars(sys.modules[exercise.reference.__module__])
    # another function of the library may have an exercise's name
    given = {x.name for x in known if own_names.get(x.name, x.reference) is x.reference}
    given |= set(re.findall(r"(?<![\w.])\w+", code)) - ({x.name for x in known} - given)
    text = self_contained(exercise.reference, of_lesson(exercise.lesson), given)
    own = source_of(exercise.reference)
    # with nothing but imports before it, it stands as it does in the library
    return text if _helpers(text) - {exercise.name} else own


@cache
def standalone(exercise: Exercise) -> str:
    """Return a text that defines an exercise's name as the library does."""
    return self_contained(exercise.reference, of_lesson(exercise.lesson))


def of_lesson(lesson: str) -> Callable[[str], bool]:
    """Return what tells whether a module of the course is not of a lesson before that of a page."""
    number = lesson_of(lesson)
    earlier = {x.reference.__module__ for x in map(load, ids()) if lesson_of(x.lesson) < number}
    outside = {load(x).reference.__module__ for x in ids()}

    def is_inlined(module: str) -> bool:
        return module not in earlier and (module.startswith("course_lib.") or module in outside)

    return is_inlined


def _helpers(text: str) -> set[str]:
    statements = (x for x in ast.parse(text).body if not isinstance(x, ast.Import | ast.ImportFrom))
    return {name for x in statements for name in names_bound(x)}
