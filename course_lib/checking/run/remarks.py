"""A remark on an answer that has passed: its form, what would fail or be slow elsewhere.

It costs no points.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from course_lib.answers.answer import Answer, InProcess, tensors
from course_lib.answers.settings import fresh_settings
from course_lib.answers.watch import TooManyCalls, Watch
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain.difference import kind
from course_lib.checking.run.trial import Question, cases, each, one_of_each, request_for

TIMES = 10  # as many operations as the reference makes
FEWEST = 200  # operations of which nobody would speak
# what makes a tensor, on the CPU unless it is told another device
FACTORIES = tuple(
    f"torch.{name}"
    for name in (
        "tensor as_tensor from_numpy zeros ones full empty eye arange linspace logspace rand randn"
        " randint randperm tril_indices triu_indices scalar_tensor"
    ).split()
)


@fresh_settings()
def remark(exercise: Exercise, answer: Answer, seed: int = 0) -> str | None:
    """Say in a sentence or two what a passed answer would not do elsewhere, if anything."""
    return (
        _moved(exercise, answer, seed)
        or _form(exercise, answer, seed)
        or _on_a_gpu(exercise, answer, seed)
        or _slow(exercise, answer, seed)
        or _unguarded(exercise, answer)
    )


def _moved(exercise: Exercise, answer: Answer, seed: int) -> str | None:
    """Find a result on another device than the inputs, which are on the CPU."""
    device = answer.run(cases(exercise, seed)[0].request).device
    if device == "cpu":
        return None
    return (
        f"One remark: the inputs are on the CPU, and your result is on the device {device!r}. "
        "Compute where the inputs are, as in `device=x.device`, and leave the choice to the caller."
    )


def _form(exercise: Exercise, answer: Answer, seed: int) -> str | None:
    """Find a result whose numbers are right, and that is of another type than it should be."""
    first = cases(exercise, seed)[0]
    got, right = answer.run(first.request).output, first.expected.output
    if wrong := next(_other_types(got, right), None):
        ours, theirs = map(_kind, wrong)
        if (ours, theirs) == ("a float", "an int"):
            theirs = "a whole number: one float in it, as `/` gives, makes all of it a float"
        return f"One remark: this returns {ours}, and should return {theirs}."
    if "default float type" not in (exercise.reference.__doc__ or ""):
        return None
    other = answer.run(replace(first.request, default_dtype="float64"))
    if all(x.dtype == torch.float64 for _, x in tensors(other.output)):
        return None
    return (
        "One remark: the result is float32 always. Who has set another default by "
        "`torch.set_default_dtype` expects that: leave out `dtype=torch.float32`."
    )


def _other_types(got: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of a result that are of another type than those of the right one."""
    if isinstance(got, Tensor) and isinstance(right, Tensor):
        if got.dtype != right.dtype:
            yield got, right
    elif type(got) is not type(right):
        yield got, right
    elif isinstance(got, tuple | list):
        for ours, theirs in zip(got, right, strict=False):
            yield from _other_types(ours, theirs)


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"numbers of {str(value.dtype).removeprefix('torch.')}"
    return kind(value)


def _on_a_gpu(exercise: Exercise, answer: Answer, seed: int) -> str | None:
    """Ask with inputs on torch's meta device, which has no numbers, as far as it can be asked.

    Its first use takes a second, so that only an answer which makes tensors is asked.
    """
    first = replace(cases(exercise, seed)[0].request, watch=FACTORIES)
    if not answer.run(first).forbidden:
        return None
    for question in one_of_each(cases(exercise, seed), type):
        if next(tensors(question.case.inputs), None) is None:
            return _on_its_own_device(exercise, answer, question)
        case = each(question.case, lambda x: x.to("meta"))
        request = request_for(exercise, case, seed)
        right, reply = InProcess(exercise.reference).run(request), answer.run(request)
        if right.error:
            return None
        if reply.error:
            # an operation that meta lacks says so of its backend
            message = reply.error.message
            fails = "device" in message and "backend" not in message
        else:
            # what is on the meta device comes back as no tensor
            fails = any(tensors(reply.output)) and not any(tensors(right.output))
        if fails:
            name = next(
                (p.name for p in exercise.parameters if hasattr(p.annotation, "dim_str")), "x"
            )
            return (
                "One remark: on a GPU this would fail. A tensor that you make yourself is on the "
                f"CPU unless you say `device={name}.device`."
            )
    return None


def _on_its_own_device(exercise: Exercise, answer: Answer, question: Question) -> str | None:
    """Ask for a result on torch's meta device, where a `device` is all that says where."""
    if "device" not in inspect.signature(exercise.reference).parameters:
        return None
    asked, named = question.request.inputs, question.request.keywords
    request = replace(question.request, inputs=(*asked, "meta"), keywords=(*named, "device"))
    # what is on the meta device comes back as no tensor
    if not any(tensors(answer.run(request).output)):
        return None
    return "One remark: whatever `device` is, the result is on the CPU."


def _unguarded(exercise: Exercise, answer: Answer) -> str | None:
    """Find that the lines of the stub which refuse bad arguments are gone."""
    if "raises " not in (exercise.reference.__doc__ or "").lower():  # its stub is made by parsing
        return None
    refuses, source = re.search(r"raise (\w+)\(", exercise.stub), answer.describe().source
    if refuses is None or source is None or re.search(r"\b(raise|assert)\b", source):
        return None
    return (
        f"One remark: the lines that you were given refuse bad arguments with a {refuses[1]}, and "
        "no line of yours does."
    )


def _slow(exercise: Exercise, answer: Answer, seed: int) -> str | None:
    """Count operations of torch, which are the same on every machine, where time is not."""
    for question in cases(exercise, seed):
        with Watch() as count:
            InProcess(exercise.reference).run(question.request)
        most = max(FEWEST, TIMES * count.made)
        error = answer.run(replace(question.request, max_calls=most)).error
        if count.made and error and error.type == TooManyCalls.__name__:
            return (
                f"One remark: it is slow for long inputs. One case takes over {most} operations of "
                f"torch, where {count.made} are enough. Which loop could be one operation on a "
                "whole tensor?"
            )
    return None
