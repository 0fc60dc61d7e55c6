"""An exam of *find the bug* whose pages no other student has: drawn, and handed out.

Which fault a page has, and the numbers in its names, are drawn from the class's seed, the student
and the exercise: the same class, the same bytes.
"""

import hashlib
import sys

from course_lib.answers.source import names_used, source_of
from course_lib.checking.catalogue import ids, load, outline
from course_lib.checking.exercise import Exercise
from course_lib.checking.laws.faults import faults
from course_lib.checking.notebook.solution_text import of_lesson, self_contained
from course_lib.files.course_map import lesson_of
from course_lib.grading.marks.exam_key import Page

INTRODUCTION = """\
# Find the bug

On each of these pages one place is wrong, and only one. Find it and mend it there: change nothing
else, since an answer that is written anew does not count. The pages of others have other faults.
`check` says whether yours is mended."""


def draw(exercise: Exercise, seed: str, student: str) -> Page:
    """Draw a student's page. Raises NoFaults where an exercise has none."""
    salt = f"{seed}\0{student}\0{exercise.id}"
    several = faults(exercise)
    drawn = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:8])
    fault = several[drawn % len(several)]
    return Page(_before(exercise), fault.page(exercise, salt), fault.wrong, fault.right)


def notebook(pages: dict[str, Page]) -> dict:
    """Return the notebook that a student gets, as its JSON says it."""
    cells = [_text(INTRODUCTION), _code("from course_lib.exercises import check, mine")]
    for number, (exercise_id, page) in enumerate(pages.items(), start=1):
        exercise = load(exercise_id)
        title = outline(exercise_id).title.removeprefix("Find the bug: ")
        cells += [_text(f"## {number}. {title}"), _code(page.before)]
        cells += [
            _code(page.handed_out.rstrip(), exercise=exercise_id),
            _code(f'check("{exercise_id}", {exercise.name})'),
        ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def _before(exercise: Exercise) -> str:
    """Write what a page stands on: imports, helpers, and the lesson's other answers."""
    lesson, own = lesson_of(exercise.lesson), source_of(exercise.reference)
    module = vars(sys.modules[exercise.reference.__module__])
    others = {
        x.name: x.id
        for x in map(load, ids())
        if lesson_of(x.lesson) == lesson and x is not exercise and module.get(x.name) is x.reference
    }
    whole = self_contained(exercise.reference, of_lesson(exercise.lesson), others)
    before = whole[: whole.rindex(own)].rstrip()
    used = names_used(exercise.reference, own).keys() & others.keys()
    lines = [f'{name} = mine("{others[name]}")' for name in sorted(used)]
    return "\n".join([*lines, before]).strip()


def _text(source: str) -> dict:
    lines = source.splitlines(keepends=True)
    return {"cell_type": "markdown", "metadata": {}, "source": lines}


def _code(source: str, **metadata: str) -> dict:
    lines = source.splitlines(keepends=True)
    empty = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "metadata": metadata, "source": lines, **empty}
