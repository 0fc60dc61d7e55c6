"""The watch sees an operation on whatever way it is reached, and changes nothing that it sees."""

import threading

import pytest
import torch
from torch import nn

from course_lib.answers.forbidden_calls import watching

X = torch.tensor([[0.0, 1.0], [2.0, -3.0]])
RIGHT = X.exp() / X.exp().sum(-1, keepdim=True)


def in_a_thread(x):
    found = []
    thread = threading.Thread(target=lambda: found.append(x.softmax(-1)))
    thread.start()
    thread.join()
    return found[0]


def in_inference_mode(x):
    with torch.inference_mode():
        return x.softmax(-1)


WAYS = {
    "a method": lambda x: x.softmax(-1),
    "a layer": nn.Softmax(-1),
    "the operation itself": lambda x: torch.ops.aten._softmax(x, -1, False),
    "a tensor that was there": lambda x: torch.softmax(x, -1, out=torch.empty_like(x)),
    "vmap": torch.vmap(lambda row: row.softmax(-1)),
    "a thread": in_a_thread,
    "inference mode": in_inference_mode,
    "another device": lambda x: x.to("meta").softmax(-1),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_operation_is_seen_whichever_way_leads_to_it(way):
    with watching(("aten.softmax",)) as outer, watching(("aten.softmax", "aten.conv")) as inner:
        found = WAYS[way](X)
    assert outer == inner
    assert "aten._softmax" in inner
    assert found.is_meta or torch.allclose(found, RIGHT)


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
