"""What strangers wrote: right answers pass (one for each exercise here, all of them weekly), and
what a reader found untrue or poor in a sentence is not said again.
"""

import pytest

from course_lib.answers.process import ChildProcess
from course_lib.checking.verdict import HELD
from research.evaluation import judged, read

RIGHT = {row["exercise"]: row for row in read() if row["right"] and row["class"] == "passed"}
MENDED = [row for row in read() if row.get("before") not in (None, HELD, row["said"])]


@pytest.fixture(scope="module")
def handle():
    with ChildProcess() as child:
        yield child


@pytest.mark.parametrize("exercise", sorted(RIGHT))
def test_a_strangers_right_answer_passes(exercise, handle):
    verdict = judged(RIGHT[exercise], handle)
    assert verdict.status == "passed", f"{RIGHT[exercise]['fault']}: {verdict.message}"


@pytest.mark.parametrize("row", MENDED, ids=lambda row: f"{row['exercise']}: {row['fault']}")
def test_what_a_reader_has_refused_is_not_said_again(row, handle):
    said = " ".join(judged(row, handle).message.split())
    if row["before"] in row["said"]:  # it was too little
        assert said != row["before"]
    else:
        assert row["before"] not in said
