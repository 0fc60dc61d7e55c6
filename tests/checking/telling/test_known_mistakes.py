"""The laws of naming: an answer is named as a mistake only if it gave the mistake's results."""

import pytest

from course_lib.answers.answer import InProcess
from course_lib.checking import catalogue
from course_lib.checking.laws.edits import edits
from course_lib.checking.laws.laws import _defined, _first
from course_lib.checking.laws.mutants import mutants
from course_lib.checking.telling.known_mistakes import diagnosis, equal_sizes, known, same_rows
from course_lib.checking.trying.trial import AnswerRun, cases, same_reply


def is_other(exercise, tried, named):
    """Tell whether an answer gave other results than the mistake that it was named as."""
    wrong = known(exercise, named, 0)
    asked = [q for q in cases(exercise, 0) if not q.expected.error]
    if all(
        tried.reply(q).error for q in asked if not same_reply(tried.reply(q), q.expected, exercise)
    ):
        asked = equal_sizes(exercise, 0)
    return not all(
        same_reply(x, y, exercise) or same_rows(x.output, y.output, q.expected.output, exercise)
        for x, y, q in ((tried.reply(q), wrong.reply(q), q) for q in asked)
    )


@pytest.mark.parametrize("exercise_id", catalogue.ids())
def test_what_is_made_by_machine_is_named_as_no_mistake_with_other_results(exercise_id):
    exercise = catalogue.load(exercise_id)
    answers = {old: _defined(exercise, source) for old, source in edits(exercise)}
    answers |= mutants(exercise, _first(exercise, 0)) | {
        f"{a.__name__} (right)": a for a in exercise.alternatives
    }
    misnamed = []
    for name, answer in answers.items():
        tried = AnswerRun(exercise, InProcess(answer), 0)
        if (
            not tried.passes()
            and (found := diagnosis(tried, 0))
            and is_other(exercise, tried, found)
        ):
            misnamed.append(f"{name} is taken for {found.name}: {found.sentence}")
    assert misnamed == []
