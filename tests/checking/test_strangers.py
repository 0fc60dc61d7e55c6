"""Answers of strangers that are right pass: one for each exercise here, all of them weekly."""

import pytest

from course_lib.answers.process import ChildProcess
from research.evaluation import judged, read

RIGHT = {row["exercise"]: row for row in read() if row["right"] and row["class"] == "passed"}


@pytest.fixture(scope="module")
def handle():
    with ChildProcess() as child:
        yield child


@pytest.mark.parametrize("exercise", sorted(RIGHT))
def test_a_strangers_right_answer_passes(exercise, handle):
    verdict = judged(RIGHT[exercise], handle)
    assert verdict.status == "passed", f"{RIGHT[exercise]['fault']}: {verdict.message}"
