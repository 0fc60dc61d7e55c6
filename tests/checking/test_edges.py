"""What the shapes of a signature allow, and no case of an exercise's own has."""

import pytest
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.answers.answer import InProcess
from course_lib.checking.trial import AnswerRun
from tests.checking.test_trial import exercise_of


def mean(
    x: Float[Tensor, "... n d"], mask: Bool[Tensor, "*#batch #query #n"] | None = None
) -> Float[Tensor, "... d"]:
    """Average the rows that the first row of the mask shows, or all of them."""
    shown = torch.ones_like(x[..., 0], dtype=torch.bool) if mask is None else mask[..., 0, :]
    shown = shown.expand(x.shape[:-1]).unsqueeze(-1).to(x.dtype)
    return (x * shown).sum(-2) / shown.sum(-2).clamp(min=1)


def up_to_two_batch_axes(x, mask=None):
    assert x.dim() < 5
    return mean(x, mask)


def squeezed(x, mask=None):
    return mean(x, mask).squeeze(0)


def zeros_are_padding(x, mask=None):
    full = x.any(-1).unsqueeze(-2)
    return mean(x, full if mask is None else full & mask)


def a_column_for_each_token(x, mask=None):
    assert mask is None or mask.shape[-1] == x.shape[-2]
    return mean(x, mask)


def a_row_for_each_token(x, mask=None):
    assert mask is None or mask.shape[-2] == x.shape[-2]
    return mean(x, mask)


X, SHOWN = torch.arange(1.0, 7.0).view(3, 2), ~torch.eye(3, dtype=torch.bool).flip(0)
CASES = ((X,), (X, SHOWN), (torch.stack([X, -X]), SHOWN), (torch.stack([X, -X]),))


@pytest.mark.parametrize(
    ("answer", "edges"),
    [
        (mean, []),
        (up_to_two_batch_axes, ["three batch axes"]),
        (squeezed, ["a batch of one"]),
        (zeros_are_padding, ["a row of zeros"]),
        (a_column_for_each_token, ["a mask of one column"]),
        (a_row_for_each_token, ["a mask of one row"]),
    ],
)
def test_what_breaks_at_one_edge_fails_there(answer, edges):
    run = AnswerRun(exercise_of(mean, *CASES), InProcess(answer), 0)
    assert [call.case.name for call in run.calls(0) if not call.held] == edges


def test_who_fails_elsewhere_is_not_asked_at_the_edges():
    run = AnswerRun(exercise_of(mean, *CASES), InProcess(lambda x, mask=None: 2 * mean(x, mask)), 0)
    assert len([*run.calls(0)]) == len(CASES)


def test_an_exercise_may_say_that_something_is_no_edge():
    exercise = exercise_of(mean, *CASES, no_edge={"a row of zeros": "zeros are padding"})
    assert AnswerRun(exercise, InProcess(zeros_are_padding), 0).holds(0)


def test_a_failing_edge_is_told_again():
    run = AnswerRun(exercise_of(mean, *CASES), InProcess(up_to_two_batch_axes), 0)
    first, again = ([call.case.name for call in run.calls(0)] for _ in range(2))
    assert first == again
