"""What an answer needs goes with it, and nothing that only looks like it."""

import pytest
import torch

from course_lib.answers.source import define, self_contained

ANSWER = '''
def answer(x: Tensor, factor: float = FACTOR) -> Tensor:
    """Multiply, and add up."""
    total = [helper(item) for item in x]
    return factor * nn.functional.relu(torch.stack(total))
'''


def defined(**notebook):
    names = {"Tensor": torch.Tensor, "torch": torch, "nn": torch.nn, "FACTOR": 2.0}
    helper = define("def helper(y):\n    return y + 1\n", "helper")
    return define(ANSWER, "answer", names | {"helper": helper} | notebook)


def test_globals_annotations_defaults_and_helpers_go_along():
    carried = define(self_contained(defined()), "answer")
    assert carried(torch.tensor([-3.0, 1.0])).tolist() == [0.0, 4.0]


def test_a_variable_that_only_shares_a_parameters_or_locals_name_stays_behind():
    tensors = dict.fromkeys(("x", "factor", "total", "item"), torch.zeros(3))
    assert self_contained(defined(**tensors)) == self_contained(defined())


def test_a_variable_that_is_read_cannot_go_along_and_is_named():
    with pytest.raises(ValueError, match="it uses helper, a Tensor that only this notebook has"):
        self_contained(defined(helper=torch.zeros(3)))
