"""What an answer computes is seen while it runs, whoever reached it how, and nothing remains."""

import pytest
import torch
from torch import nn

from course_lib import attention
from course_lib.answers.answer import InProcess, Request
from course_lib.answers.source import define
from course_lib.answers.watch import watching

X = torch.tensor([[0.0, 1.0], [2.0, -3.0]])
RIGHT = X.exp() / X.exp().sum(-1, keepdim=True)


def in_inference_mode(x):
    with torch.inference_mode():
        return x.softmax(-1)


WAYS = {
    "a method": lambda x: x.softmax(-1),
    "a layer": nn.Softmax(-1),
    "the operation itself": lambda x: torch.ops.aten._softmax(x, -1, False),
    "a tensor that was there": lambda x: torch.softmax(x, -1, out=torch.empty_like(x)),
    "vmap": torch.vmap(lambda row: row.softmax(-1)),
    "inference mode": in_inference_mode,
    "another device": lambda x: x.to("meta").softmax(-1),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_operation_is_seen_whichever_way_leads_to_it(way):
    with watching(("aten.softmax",)) as outer, watching(("aten.softmax", "aten.conv")) as inner:
        result = WAYS[way](X)
    assert outer == inner
    assert any("softmax" in name for name in inner)
    assert result.is_meta or torch.allclose(result, RIGHT)


def test_gradients_go_through_what_is_watched_and_nothing_else_is_noted():
    x = X.clone().requires_grad_()
    with watching(("aten.softmax",)) as seen:
        y = x.exp() / x.exp().sum(-1, keepdim=True)
    assert not seen
    with watching(("aten.softmax",)):
        z = x.softmax(-1)
    z.softmax(-1)
    pulled = (torch.autograd.grad(value.square().sum(), x)[0] for value in (y, z))
    torch.testing.assert_close(*pulled)


def test_while_it_is_watched_a_function_does_what_it_does_and_after_it_too():
    before, x = attention.softmax.__code__, torch.ones(2, 4)
    with watching(("course_lib.attention.softmax",)) as seen:
        assert torch.equal(attention.softmax(x, mask=None), x / 4)
    assert seen == ["course_lib.attention.softmax"]
    assert attention.softmax.__code__ is before


SQUARE = "def f(x):\n    products = x.unsqueeze(-1) * x\n    return products.sum(-1)\n"
LOOP = "def f(x):\n    for _ in range(5):\n        x = x * 2\n    return x\n"
CAUGHT = "def f(x):\n    try:\n        x = {}\n    except Exception:\n        pass\n    return x\n"


def error_of(source, **bounds):
    return InProcess(define(source, "f")).run(Request((torch.ones(6),), **bounds)).error


def test_a_tensor_above_the_bound_is_an_error_at_the_line_that_made_it():
    assert error_of(SQUARE) is None
    assert error_of(SQUARE, max_numel=36) is None
    error = error_of(SQUARE, max_numel=35)
    assert (error.type, error.text) == ("MemoryError", "products = x.unsqueeze(-1) * x")
    assert "6 x 6" in error.message


def test_a_view_holds_no_numbers_of_its_own():
    assert error_of("def f(x):\n    return x.expand(6, 6)[:, 0]\n", max_numel=35) is None


def test_one_operation_more_than_allowed_is_an_error():
    assert error_of(LOOP, max_calls=5) is None
    error = error_of(LOOP, max_calls=4)
    assert (error.type, error.message) == ("TooManyCalls", "more than 4 operations of torch")


@pytest.mark.parametrize("bound", [{"max_calls": 1}, {"max_numel": 35}])
def test_what_is_refused_is_an_error_even_where_the_answer_catches_it(bound):
    assert error_of(CAUGHT.format("(x.unsqueeze(-1) * x).sum(-1)"), **bound)


def test_the_bounds_end_with_the_call():
    error_of(LOOP, max_calls=1, max_numel=1)
    assert torch.stack([torch.ones(100) for _ in range(9)]).sum() == 900


class Meddling(torch.Tensor):
    """Computes what is forbidden when its result is read."""

    def detach(self):
        return torch.softmax(torch.zeros(2, 2), -1)

    @property
    def layout(self):
        return self.detach()


class Telling(Exception):
    def __str__(self):
        return str(torch.softmax(torch.zeros(2), -1))


def raises(x):
    raise Telling


def test_a_result_is_read_by_torchs_own_methods():
    reply = InProcess(lambda x: x.as_subclass(Meddling)).run(Request((X,), watch=("aten.softmax",)))
    assert torch.equal(reply.output, X)
    assert not reply.forbidden


def test_what_an_exception_computes_to_say_is_seen():
    assert InProcess(raises).run(Request((X,), watch=("aten.softmax",))).forbidden
