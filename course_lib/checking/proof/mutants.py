"""Wrong answers derived mechanically from any reference: a sound check catches each of them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.answers.answer import Reply, change_tensors, tensors
from course_lib.checking.exercise import Exercise
from course_lib.checking.trial import differentiable, is_float

CONSTANTS = (0, 1)


def mutants(exercise: Exercise, reply: Reply) -> dict[str, Callable]:
    """Derive the mutants that apply to an exercise whose reference gave this reply.

    "first case only", "only 0s" and "only 1s" always; "changes its input" where an input is a
    tensor; "detached" where the output has a gradient to pass on, "float32 inside" where that is
    an input's.
    """
    found = {"first case only": _wrap(exercise, _FirstOnly())}
    found |= {f"only {number}s": _wrap(exercise, _Constant(number)) for number in CONSTANTS}
    if any(tensors(reply.inputs)):
        found["changes its input"] = _wrap(exercise, _in_place)
    if differentiable(exercise, reply):
        found["detached"] = _wrap(exercise, _detached)
        if any(is_float(x) for _, x in tensors(reply.inputs)):
            found["float32 inside"] = _wrap(exercise, _float32)
    return found


def _wrap(exercise: Exercise, change: Callable) -> Callable:
    """Return the reference with every call of it passed through `change(call, inputs)`."""
    if exercise.method is None:
        return lambda *inputs: change(exercise.reference, inputs)

    def method(self, *inputs):
        original = getattr(exercise.reference, exercise.method)
        return change(lambda *inputs: original(self, *inputs), inputs)

    return type(exercise.name, (exercise.reference,), {exercise.method: method})


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
