"""A right answer that loops over numbers or rows hears it; one that does not hears nothing."""

import pytest

from course_lib.answers.answer import InProcess
from course_lib.checking.catalogue import load
from course_lib.checking.notebook import pace
from course_lib.exercises import check

LOOPS = {
    "attention/softmax": ["row_by_row"],
    "positions/sinusoidal": ["entry_by_entry"],
    "add_norm/layer_norm": ["word_by_word"],
    "multi_head/attention": [],
    "rnn/unroll": [],
    "transformer/parameters": [],  # the reference makes no operation at all
}


@pytest.mark.parametrize("exercise_id", LOOPS)
def test_of_the_right_answers_those_that_loop_hear_it(exercise_id):
    exercise = load(exercise_id)
    answers = [exercise.reference, *exercise.alternatives]
    slow = [x.__name__ for x in answers if pace.remark(exercise, InProcess(x))]
    assert slow == LOOPS[exercise_id]


def test_it_is_said_below_the_panel_of_a_pass(capsys):
    [row_by_row] = [x for x in load("attention/softmax").alternatives if x.__name__ == "row_by_row"]
    check("attention/softmax", row_by_row)
    passed, _, rest = capsys.readouterr().out.partition("Right, but slow for long inputs: ")
    assert "passed" in passed
    assert rest.startswith("one case takes over 200 operations of torch, where 15 are enough.")
