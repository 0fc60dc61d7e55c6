"""Wrong answers derived mechanically from any reference: a sound check catches each of them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from course_lib import attention
from course_lib.answers.answer import InProcess, Reply, change_tensors, tensors
from course_lib.checking.exercise import Exercise
from course_lib.checking.trial import cases, differentiable, is_float

CONSTANTS = (0, 1)
SOFTMAX = attention.softmax


def mutants(exercise: Exercise, reply: Reply) -> dict[str, Callable]:
    """Derive the mutants that apply to an exercise whose reference gave this reply.

    "first case only", "only 0s" and "only 1s" always; "changes its input" where an input is a
    tensor; "detached" where the output has a gradient to pass on, "float32 inside" where that is
    an input's; "... ignored" for each argument that has a default. Where the reference calls
    `attention.softmax`: "softmax without its maximum", and "masked with a large number" if it
    hands a mask over.
    """
    derived = {"first case only": _wrap(exercise, _FirstOnly())}
    derived |= {f"only {number}s": _wrap(exercise, _Constant(number)) for number in CONSTANTS}
    if any(tensors(reply.inputs)):
        derived["changes its input"] = _wrap(exercise, _in_place)
    if differentiable(exercise, reply):
        derived["detached"] = _wrap(exercise, _detached)
        if any(is_float(x) for _, x in tensors(reply.inputs)):
            derived["float32 inside"] = _wrap(exercise, _float32)
    for place, parameter in enumerate(exercise.parameters):
        if parameter.default is not parameter.empty:
            ignoring = _ignoring(place, parameter.default)
            derived[f"{parameter.name} ignored"] = _wrap(exercise, ignoring)
    calls: list[bool] = []  # whether each call of softmax came with a mask
    with _softmax_replaced(lambda scores, mask=None: _noted(calls, scores, mask)):
        for question in cases(exercise, 0):
            InProcess(exercise.reference).run(replace(question.request, watch=()))
    if calls and exercise.reference is not attention.softmax:
        derived["softmax without its maximum"] = _wrap(exercise, _with_softmax(_overflowing))
        if any(calls):
            derived["masked with a large number"] = _wrap(exercise, _with_softmax(_finite_mask))
    return derived


def _wrap(exercise: Exercise, change: Callable) -> Callable:
    """Return the reference with every call of it passed through `change(call, inputs)`.

    What is given by name are the last inputs, in their order.
    """
    if exercise.method is None:
        return lambda *first, **last: change(exercise.reference, (*first, *last.values()))

    def method(self, *first, **last):
        original = getattr(exercise.reference, str(exercise.method))
        return change(lambda *inputs: original(self, *inputs), (*first, *last.values()))

    reference = cast(type, exercise.reference)
    return type(exercise.name, (reference,), {exercise.method: method})


class _FirstOnly:
    """Right for the first case, whose result it then gives always."""

    def __init__(self):
        self.first: tuple[Any] | None = None

    def __call__(self, call: Callable, inputs: tuple) -> Any:
        self.first = self.first or (call(*inputs),)
        return self.first[0]


class _Constant:
    """Gives the same number always, in a result of the right shape."""

    def __init__(self, number: int):
        self.number = number

    def __call__(self, call: Callable, inputs: tuple) -> Any:
        output = call(*inputs)
        if isinstance(output, Tensor | tuple):
            return change_tensors(output, lambda y: torch.full_like(y, self.number))
        return type(output)(self.number)


def _in_place(call: Callable, inputs: tuple) -> Any:
    output = call(*inputs)
    with torch.no_grad():
        for _, x in tensors(inputs):
            x.copy_(~x if x.dtype == torch.bool else x + 1)
    return output


def _detached(call: Callable, inputs: tuple) -> Any:
    return change_tensors(call(*inputs), Tensor.detach)


def _float32(call: Callable, inputs: tuple) -> Any:
    dtype = next(x.dtype for _, x in tensors(inputs) if is_float(x))
    single = change_tensors(inputs, lambda x: x.float() if x.is_floating_point() else x)
    return change_tensors(call(*single), lambda y: y.to(dtype) if is_float(y) else y)


def _ignoring(place: int, default: Any) -> Callable:
    """Take the default whatever is given at this place."""

    def change(call: Callable, inputs: tuple) -> Any:
        given = place < len(inputs)
        return call(*inputs[:place], default, *inputs[place + 1 :]) if given else call(*inputs)

    return change


def _noted(calls: list[bool], scores: Tensor, mask: Tensor | None) -> Tensor:
    calls.append(mask is not None)
    return SOFTMAX(scores, mask)


def _overflowing(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    exponentials = torch.exp(scores)
    if mask is not None:
        exponentials = exponentials.masked_fill(~mask, 0.0)
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


def _finite_mask(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -1e4), -1)


def _with_softmax(softmax: Callable) -> Callable:
    def change(call: Callable, inputs: tuple) -> Any:
        with _softmax_replaced(softmax):
            return call(*inputs)

    return change


@contextmanager
def _softmax_replaced(softmax: Callable) -> Iterator[None]:
    """Let every module of the course that knows `attention.softmax` find another one."""
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("course_lib.")]
    places = [(m, name) for m in modules for name, x in list(vars(m).items()) if x is SOFTMAX]
    places = [(m, name) for m, name in places if m is not sys.modules[__name__]]
    try:
        for module, name in places:
            setattr(module, name, softmax)
        yield
    finally:
        for module, name in places:
            setattr(module, name, SOFTMAX)
