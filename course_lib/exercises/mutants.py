"""Wrong answers derived mechanically from any reference: a sound check catches each of them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.exercises.answer import Reply
from course_lib.exercises.exercise import Exercise
from course_lib.exercises.properties import change_tensors, has_gradient


def mutants(exercise: Exercise, reply: Reply) -> dict[str, Callable]:
    """Derive the mutants that apply to an exercise whose reference gave this reply.

    "first case only" and "zeros" always; "changes its input" where an input is a tensor;
    "detached" and "float32 inside" where the output has a gradient.
    """
    found = {"first case only": _wrap(exercise, _FirstOnly()), "zeros": _wrap(exercise, _zeros)}
    if any(isinstance(x, Tensor) for x in reply.inputs):
        found["changes its input"] = _wrap(exercise, _in_place)
    if has_gradient(reply.output):
        found["detached"] = _wrap(exercise, _detached)
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


def _zeros(call: Callable, inputs: tuple) -> Any:
    output = call(*inputs)
    return change_tensors(output, torch.zeros_like) if _tensors(output) else type(output)()


def _in_place(call: Callable, inputs: tuple) -> Any:
    output = call(*inputs)
    with torch.no_grad():
        for x in inputs:
            if isinstance(x, Tensor):
                x.copy_(~x if x.dtype == torch.bool else x + 1)
    return output


def _detached(call: Callable, inputs: tuple) -> Any:
    return change_tensors(call(*inputs), Tensor.detach)


def _float32(call: Callable, inputs: tuple) -> Any:
    dtype = next(x.dtype for x in inputs if isinstance(x, Tensor) and x.is_floating_point())
    single = change_tensors(inputs, lambda x: x.float() if x.is_floating_point() else x)
    return change_tensors(call(*single), lambda y: y.to(dtype))


def _tensors(output: Any) -> bool:
    return isinstance(output, Tensor | tuple)
