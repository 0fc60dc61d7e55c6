"""nbgrader: `source/LESSON/LESSON.ipynb`, whose locked cells give the points of our checks."""

import re
from collections.abc import Iterator
from textwrap import indent
from types import FunctionType
from typing import cast

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from course_lib.answers.source import source_of
from course_lib.checking.catalogue import load, outline
from course_lib.checking.exercise import Exercise
from course_lib.checking.notebook.solution_text import own_imports
from course_lib.checking.stubs import emptied
from course_lib.grading.exports import release

CONFIG = """\
c = get_config()  # noqa: F821 - nbgrader defines it

c.CourseDirectory.course_id = "transformer-course"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
"""
# a last line that is a number is a partial credit; text on standard error would be a failure
CHECK = """\
from contextlib import redirect_stderr

from course_lib.exercises import verdict

with redirect_stderr(None):
    found = verdict("{id}", {name})
print(found.message)
found.points"""
README = """\
# Lesson {lesson} for nbgrader

`source/{stem}/` is an assignment as nbgrader takes it: each exercise holds its solution, which
`generate_assignment` replaces by `raise NotImplementedError`, and the locked cell below it calls
the course's check. Its points are those of the properties that hold, so half an answer earns its
half.

1. Install nbgrader where this course is installed: the checks need it. Your students
   need the course too.
2. Here, in this folder: `nbgrader generate_assignment {stem}`, and hand out `release/{stem}/`.
3. Collect into `submitted/STUDENT/{stem}/{stem}.ipynb`.
4. `nbgrader autograde {stem}`, then `nbgrader generate_feedback {stem}` and `nbgrader export`.

## What counts more than once

nbgrader runs the notebook as it stands: an answer that calls a wrong one is judged on the wrong
one, and loses points for it. `course grade` judges it on the library's, so that a mistake costs
its points once.

## What an answer may use

{packages} Here it may use whatever is installed.

## What is not protected

nbgrader runs students' code and the checks in one process, as the user who started it. So a
student's code can

- replace the check, or the functions that the check calls, and win all points;
- import the course's own functions and hand them in, since they are installed beside the checks;
- read and write your files, the grade book among them, and use your network;
- end the process, by which the exercises after it are lost too.

A container around nbgrader protects your machine, and none of the points. `course grade` has none
of these holes, and reads the same folder: `course grade . --lesson {lesson} --out grades` judges
what lies in `submitted/` in a process that students' code cannot reach, and writes `nbgrader.csv`
beside its other tables.
"""


def files(lesson: str) -> dict[str, str]:
    """Return the files of a course folder by their paths. Raises LookupError."""
    stem = release.stem(lesson)
    return {
        "README.md": README.format(lesson=lesson, stem=stem, packages=release.PACKAGES_OF_ANSWERS),
        "nbgrader_config.py": CONFIG,
        f"source/{stem}/{stem}.ipynb": release.notebook(lesson, _exercise, _other),
    }


def _exercise(cell: NotebookNode, exercise_id: str, code: str) -> Iterator[NotebookNode]:
    exercise, name = load(exercise_id), release.name(exercise_id)
    cell.source = _with_solution(exercise)
    cell.metadata["nbgrader"] = _cell(name, solution=True)
    yield cell
    check = CHECK.format(id=exercise_id, name=exercise.name)
    # what the solution stands on, and no student's answer
    if imported := own_imports(exercise.reference, code):
        check = f"### BEGIN HIDDEN TESTS\n{imported}### END HIDDEN TESTS\n{check}"
    points = {"points": outline(exercise_id).points}
    graded = _cell(f"{name}-points", grade=True, locked=True) | points
    yield new_code_cell(check, id=f"{name}-points", metadata={"nbgrader": graded})


def _other(cell: NotebookNode) -> Iterator[NotebookNode]:
    if cell.cell_type == "code":
        cell.metadata["nbgrader"] = _cell(f"given-{cell.id}", locked=True)
    yield cell


def _cell(name: str, grade: bool = False, locked: bool = False, solution: bool = False) -> dict:
    return {
        "schema_version": 3,
        "grade_id": name,
        "grade": grade,
        "locked": locked,
        "solution": solution,
        "task": False,
    }


def _with_solution(exercise: Exercise) -> str:
    """Return the stub, with the reference's lines between nbgrader's marks in place of `raise`."""
    # a type checker takes a function in a field for a method
    reference = cast(FunctionType | type, exercise.reference)
    text = source_of(reference)
    # the last method first, so that the first hole is the one just made
    for method in exercise.methods[::-1] or (None,):
        text = _marked(text, method)
    if exercise.broken:
        # nbgrader would clear it with the solution, so it is a comment above
        broken = indent(f"The code with a fault:\n\n{exercise.stub}", "# ", lambda _: True)
        text = re.sub("(?m)^ *(?=### BEGIN)", lambda m: indent(broken, m[0]) + m[0], text, count=1)
    return text


def _marked(text: str, method: str | None) -> str:
    """Put nbgrader's marks around the lines of a function, or of one method, that are taken out."""
    empty, whole = emptied(text, method).splitlines(), text.splitlines()
    place = next(i for i, line in enumerate(empty) if line.strip() == "raise NotImplementedError")
    after = len(empty) - place - 1
    first = next(i for i, (a, b) in enumerate(zip(empty, whole, strict=False)) if a != b)
    margin = " " * (len(empty[place]) - len(empty[place].lstrip()))
    lines = [
        *empty[:place],
        f"{margin}### BEGIN SOLUTION",
        *whole[first : len(whole) - after],
        f"{margin}### END SOLUTION",
        *empty[place + 1 :],
    ]
    return "\n".join(lines)
