"""What an answer does is its own: nothing that ran before it in the process has a part in it."""

import pytest
import torch
from einops import repeat

from course_lib.answers.answer import InProcess, Request


@pytest.mark.parametrize("order", [(2, 2.0), (2.0, 2)])
def test_the_answer_tried_before_changes_nothing(order):
    def errors(times):
        answer = InProcess(lambda x: repeat(x, "n -> (n times)", times=times))
        error = answer.run(Request((torch.ones(3),))).error
        return error and error.type

    assert list(map(errors, order)) == [None if type(x) is int else "TypeError" for x in order]
