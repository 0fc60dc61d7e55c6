"""How many operations an answer makes is measured, where a law asks for it."""

import pytest
import torch

from course_lib.answers.answer import InProcess, Request
from course_lib.answers.source import define

LOOP = """
def doubled(x):
    for _ in range(5):
        x = x * 2
    return x
"""
CAUGHT = """
def doubled(x):
    try:
        for _ in range(5):
            x = x * 2
    except Exception:
        pass
    return x
"""


def reply(max_calls, source=LOOP):
    return InProcess(define(source, "doubled", {})).run(
        Request((torch.ones(3),), max_calls=max_calls)
    )


@pytest.mark.parametrize("max_calls", [None, 5])
def test_as_many_operations_as_allowed_are_let_pass(max_calls):
    assert reply(max_calls).output.tolist() == [32.0] * 3


@pytest.mark.parametrize("source", [LOOP, CAUGHT])
def test_one_more_is_an_error_even_where_the_answer_catches_it(source):
    error = reply(4, source).error
    assert error.type == "TooManyCalls"
    assert "more than 4 operations" in error.message


def test_the_bound_ends_with_the_call():
    reply(1)
    assert sum(torch.ones(1) for _ in range(9)) == 9
