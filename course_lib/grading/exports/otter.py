"""otter-grader: a notebook, and a test file for each exercise that calls our check."""

import json
from collections.abc import Iterator

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from course_lib.checking.catalogue import load
from course_lib.checking.exercise import Exercise
from course_lib.exercises import verdict
from course_lib.grading.exports import release
from course_lib.grading.judging.rules import exercises_of

START = """\
import otter

grader = otter.Notebook("{stem}.ipynb")"""
# one case a property, so that otter counts the points of those that hold
TEST = '''\
"""The check of {id}: a case for each of its properties."""

from otter.test_files import test_case

from course_lib.exercises import verdict

OK_FORMAT = False
name = "{name}"
judged = {{}}


def judge(answer, property):
    # once for all properties
    if id(answer) not in judged:
        judged[id(answer)] = verdict("{id}", answer)
    found = judged[id(answer)]
    assert property in [x for x, _, held in found.properties if held], found.message
'''
CASE = """

@test_case(name={sentence!r}, points={points})
def property_{number}({answer}):
    judge({answer}, {sentence!r})
"""
README = """\
# Lesson {lesson} for otter-grader

`{stem}.ipynb` is for the students, with `tests/` beside it: a test file for each
exercise, with one case for each property of the course's check, so half an answer earns its half.

1. Install otter-grader where this course is installed: the checks need both. So do your students.
2. Hand out `{stem}.ipynb` and `tests/`. `grader.check(...)` below each exercise says what does
   not hold yet.
3. Here, in this folder: `otter generate --tests-dir tests --no-environment` makes
   `autograder.zip`.
4. `otter run SUBMISSION.ipynb --autograder autograder.zip` grades a notebook, and writes
   `results.json`.

For `otter grade` and its containers, `otter generate` needs `--requirements FILE` too, a file in
which pip finds this course: a path or an address from which your containers can install it.

## What counts more than once

otter runs the notebook as it stands: an answer that calls a wrong one is judged on the wrong
one, and loses points for it. `course grade` judges it on the library's, so that a mistake costs
its points once.

## What an answer may use

{packages} Here it may use whatever is installed.

## What is not protected

otter runs students' code and the checks in one process. So a student's code can

- replace the check, or the functions that the check calls, and win all points;
- import the course's own functions and hand them in, since they are installed beside the checks;
- read the tests, and, with `otter run`, read and write your files and use your network;
- end the process, or never end, and leave you without a result.

`otter grade` runs each submission in a container: this protects your machine, and none of the
points. `course grade` has none of these holes, and reads the same notebooks:
`course grade SUBMISSIONS --lesson {lesson} --out grades` judges them in a process that students'
code cannot reach.
"""


def files(lesson: str) -> dict[str, str]:
    """Return the notebook and its tests by their paths. Raises LookupError."""
    stem = release.stem(lesson)
    first = [new_code_cell(START.format(stem=stem), id="otter")]
    tests = {
        f"tests/{release.name(exercise_id)}.py": _test(load(exercise_id))
        for exercise_id in exercises_of([lesson])
    }
    return {
        "README.md": README.format(lesson=lesson, stem=stem, packages=release.PACKAGES_OF_ANSWERS),
        "otter_config.json": json.dumps({"show_stdout": False}, indent=1) + "\n",
        f"{stem}.ipynb": release.notebook(lesson, _exercise, lambda cell: [cell], first),
        **tests,
    }


def _exercise(cell: NotebookNode, exercise_id: str, code: str) -> Iterator[NotebookNode]:
    yield cell
    name = release.name(exercise_id)
    yield new_code_cell(f'grader.check("{name}")', id=f"{name}-points")


def _test(exercise: Exercise) -> str:
    head = TEST.format(id=exercise.id, name=release.name(exercise.id))
    properties = verdict(exercise.id, exercise.reference).properties
    cases = [
        CASE.format(answer=exercise.name, sentence=sentence, points=points, number=number)
        for number, (sentence, points, _) in enumerate(properties, start=1)
    ]
    return head + "".join(cases)
