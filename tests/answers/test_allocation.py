"""What an answer makes on its way is measured, where a law asks for it."""

import pytest
import torch

from course_lib.answers.answer import InProcess, Request
from course_lib.answers.source import define

SQUARE = """
def square(x):
    products = x.unsqueeze(-1) * x
    return products.sum(-1)
"""


def reply(max_numel, source=SQUARE):
    answer = InProcess(define(source, "square", {"torch": torch}))
    return answer.run(Request((torch.ones(6),), max_numel=max_numel))


@pytest.mark.parametrize("max_numel", [None, 36])
def test_a_tensor_within_the_bound_is_let_pass(max_numel):
    assert reply(max_numel).error is None


def test_a_larger_tensor_is_an_error_at_the_line_that_made_it():
    error = reply(35).error
    assert (error.type, error.text) == ("MemoryError", "products = x.unsqueeze(-1) * x")
    assert "6 x 6" in error.message


def test_a_view_holds_no_numbers_of_its_own():
    view = "def square(x):\n    return x.expand(6, 6)[:, 0]\n"
    assert reply(35, view).error is None


def test_the_bound_ends_with_the_call():
    reply(35)
    assert torch.ones(100).sum() == 100
