"""Through every kind of handle the judge says the same of a right answer."""

import pytest

from course_lib.answers.answer import InProcess
from course_lib.answers.process import ChildProcess
from course_lib.answers.source import define
from course_lib.checking.catalogue import ids, load
from course_lib.checking.notebook.solution_text import standalone
from course_lib.checking.verdict import judge
from course_lib.grading.judging.detect import best_level
from course_lib.grading.judging.rules import MEMORY

SECONDS = 60
FIRST = {load(exercise_id).lesson: exercise_id for exercise_id in reversed(ids())}


@pytest.fixture(scope="module")
def child():
    with ChildProcess(seconds=SECONDS) as process:
        yield process


@pytest.mark.parametrize("exercise_id", FIRST.values())
def test_the_reference_passes_through_every_kind_of_handle(exercise_id, child, sandboxes):
    exercise = load(exercise_id)
    source = standalone(exercise)
    with sandboxes(exercise.lesson, best_level(), SECONDS, MEMORY) as sandbox:
        handles = [InProcess(define(source, exercise.name)), child, sandbox]
        for handle in handles[1:]:
            handle.hold(source, exercise.name)
        here, *others = (judge(exercise, handle) for handle in handles)
        assert here.status == "passed"
        assert others == [here, here]
