"""Wrong answers derived mechanically from any reference: a sound check catches each of them."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from course_lib import attention
from course_lib.answers.answer import InProcess, Probe, Reply, as_data, change_tensors, tensors
from course_lib.checking.exercise import Case, Draw, Exercise
from course_lib.checking.stock_mistakes import another_softmax
from course_lib.checking.trial import (
    cases,
    differentiable,
    drawn,
    guesses,
    is_float,
    request_for,
)


def mutants(exercise: Exercise, reply: Reply) -> dict[str, Callable]:
    """Derive the mutants that apply to an exercise whose reference gave this reply.

    "first case only" always; "changes its input" where an input is a tensor; "detached" where the
    output has a gradient to pass on, "float32 inside" where that is an input's;
    "... ignored" for each argument, and for each of the
    constructor's. Where the reference calls
    `attention.softmax`: "softmax without its maximum", and "masked with a large number" if it
    hands a mask over.
    """
    derived = {"first case only": _wrap(exercise, _FirstOnly())}
    if any(tensors(reply.inputs)):
        derived["changes its input"] = _wrap(exercise, _in_place)
    if differentiable(exercise, reply):
        derived["detached"] = _wrap(exercise, _detached)
        if any(is_float(x) for _, x in tensors(reply.inputs)):
            derived["float32 inside"] = _wrap(exercise, _float32)
    first = cases(exercise, 0)[0].case
    for name, place, value in _usual(exercise.parameters, first.inputs):
        derived[f"{name} ignored"] = _wrap(exercise, _ignoring(place, value))
    if exercise.method:
        constructor = list(inspect.signature(exercise.reference).parameters.values())
        named = {x.name for x in constructor if x.kind is x.KEYWORD_ONLY}
        # a constructor that is given may be written anew all the same
        for name in named:
            derived[f"{name} ignored"] = _built(exercise, _as_given, without=name)
        by_place = [x for x in constructor if x.name not in named]
        for name, place, value in _usual(by_place, first.build):
            derived[f"{name} ignored"] = _built(exercise, _ignoring(place, value), without=name)
    calls: list[bool] = []  # whether each call of softmax came with a mask
    noting = InProcess(another_softmax(exercise, partial(_noted, calls)))
    for question in cases(exercise, 0):
        noting.run(replace(question.request, watch=()))
    if calls and exercise.reference is not attention.softmax:
        derived["softmax without its maximum"] = another_softmax(exercise, _overflowing)
        if any(calls):
            derived["masked with a large number"] = another_softmax(exercise, _finite_mask)
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


def _built(exercise: Exercise, change: Callable, without: str = "") -> Callable:
    """Return the reference with every call of its constructor passed through `change`.

    What comes by the name `without` does not arrive.
    """
    reference = cast(type, exercise.reference)

    def build(self, *arguments, **named):
        named.pop(without, None)
        change(lambda *changed: reference.__init__(self, *changed, **named), arguments)

    return type(exercise.name, (reference,), {"__init__": build})


def guessing(exercise: Exercise) -> dict[str, Callable]:
    """Make an answer of each guess: it finds the right shape, and nothing else."""
    return {
        name: _wrap(exercise, lambda call, inputs, guess=guess: guess(inputs, call(*inputs)))
        for name, guess in guesses(exercise).items()
    }


def by_heart(exercise: Exercise, seeds: Iterable[int]) -> Callable:
    """Make an answer that knows what is asked with these seeds, and refuses everything else."""
    table: dict[Any, Any] = {}

    def learn(call: Callable, inputs: tuple) -> Any:
        key, output = _key(inputs), call(*inputs)
        table[key] = as_data(output)
        return output

    def remember(_: Callable, inputs: tuple) -> Any:
        if _key(inputs) not in table:
            raise ValueError
        return table[_key(inputs)]

    learner = InProcess(_wrap(exercise, learn))
    for seed in seeds:
        _ask_all(exercise, learner, seed)
    return _wrap(exercise, remember)


def _ask_all(exercise: Exercise, answer: InProcess, seed: int) -> None:
    """Let an answer make the calls of all cases and of the exercise's own laws."""

    def call(*inputs: Any, build: tuple = (), pieces: tuple = (), **bounds: Any) -> Any:
        request = request_for(exercise, Case("", inputs, build, pieces), seed, **bounds)
        return answer.run(request).output

    for case in drawn(exercise, seed):
        answer.run(request_for(exercise, case, seed))
    for law in exercise.properties:
        with suppress(Exception):
            law.holds(call, Draw(seed))


def _key(value: Any) -> Any:
    """Make of inputs what is equal where they are equal, and can be looked up."""
    if isinstance(value, tuple | list):
        return tuple(map(_key, value))
    if isinstance(value, Tensor):
        numbers = "meta" if value.is_meta else value.detach().double().numpy().tobytes()
        return value.shape, numbers
    return value if isinstance(value, int | float | str) else type(value)


class _FirstOnly:
    """Right for the first case, whose result it then gives always."""

    def __init__(self):
        self.first: tuple[Any] | None = None

    def __call__(self, call: Callable, inputs: tuple) -> Any:
        self.first = self.first or (call(*inputs),)
        return self.first[0]


def _as_given(call: Callable, inputs: tuple) -> Any:
    return call(*inputs)


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


def _usual(parameters: list[inspect.Parameter], given: tuple) -> Iterator[tuple[str, int, Any]]:
    """Yield the name and the place of each argument, and its default or what was first `given`."""
    for place, parameter in enumerate(parameters):
        if parameter.default is not parameter.empty:
            yield parameter.name, place, parameter.default
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            yield parameter.name, place, given[place]


def _ignoring(place: int, usual: Any) -> Callable:
    """Take the usual value whatever is given at this place."""

    def change(call: Callable, inputs: tuple) -> Any:
        if place >= len(inputs):
            return call(*inputs)
        value = usual.make() if isinstance(usual, Probe) else usual
        return call(*inputs[:place], value, *inputs[place + 1 :])

    return change


def _noted(calls: list[bool], scores: Tensor, mask: Tensor | None = None) -> Tensor:
    calls.append(mask is not None)
    return attention.softmax(scores, mask)


def _overflowing(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    exponentials = torch.exp(scores)
    if mask is not None:
        exponentials = exponentials.masked_fill(~mask, 0.0)
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


def _finite_mask(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -1e4), -1)
