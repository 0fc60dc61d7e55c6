"""The smallest case that failed, shown: what was expected, what came, and the inputs."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_lib.answers.answer import Foreign, Reply
from course_lib.checking.catalogue import load
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain.difference import Pair, example, kind
from course_lib.checking.trial import same
from course_lib.checking.verdict import Failure, Verdict

SHOWN_NUMBERS, SHOWN_LINES = 24, 5
SHOWN_CHARACTERS, BRIEF_CHARACTERS = 300, 40
Rows = list[tuple[str, str]]


class Section(NamedTuple):
    """A part of a panel: a heading and rows of (label, value), `folded` where few need it."""

    heading: str
    rows: Rows
    folded: bool = False


def failing_case(verdict: Verdict) -> tuple[str, Rows] | None:
    """Show the smallest case that failed, if one did: a heading, and rows of (label, value)."""
    failure = verdict.failure
    if not failure or not failure.got:
        return None
    outcome, inputs = _outcome(verdict.exercise, failure), _inputs(verdict.exercise, failure)
    return _case_heading(failure), [*outcome, *inputs]


def case_sections(verdict: Verdict, failure: Failure) -> list[Section]:
    """Show the smallest case that failed: what came of it, and its inputs, folded if long."""
    heading = _case_heading(failure)
    outcome, inputs = _outcome(verdict.exercise, failure), _inputs(verdict.exercise, failure)
    if "is expected." in verdict.message:  # it shows the difference already
        outcome = [row for row in outcome if row[0] != "difference"]
    if sum(1 + value.count("\n") for _, value in inputs) <= SHOWN_LINES:
        return [Section(heading, [*outcome, *inputs])]
    given = ", ".join(f"{label} {_briefly(value)}" for label, value in inputs)
    return [Section(heading, outcome), Section(f"Given: {given}", inputs, folded=True)]


def _case_heading(failure: Failure) -> str:
    said = failure.case.name or failure.sentence
    return f"Smallest failing input: {said}" if said else "Smallest failing input"


def _briefly(shown: str) -> str:
    """Cut what `show` says of a tensor down to dtype and shape, and anything else to some words."""
    first = shown.splitlines()[0].partition("  ")[0]
    return first if len(first) <= BRIEF_CHARACTERS else f"{first[:BRIEF_CHARACTERS]}..."


def _inputs(exercise_id: str, failure: Failure) -> Rows:
    names = [parameter.name for parameter in load(exercise_id).parameters]
    rows = [("built with", repr(failure.case.build))] if failure.case.build else []
    if failure.case.pieces:
        rows.append(("called with", f"{', then '.join(map(str, failure.case.pieces))} tokens"))
    return [*rows, *((n, show(x)) for n, x in zip(names, failure.case.inputs, strict=False))]


def _outcome(exercise_id: str, failure: Failure) -> Rows:
    """Say what was expected and what came, the difference first."""
    got, expected = failure.got, failure.expected
    if expected is None:
        return [] if failure.error else [("got", show(got.output))]
    if got.error:
        return [("expected", show(expected.output))]
    for label, ours, theirs, tolerance in _compared(load(exercise_id), got, expected):
        if not same(ours, theirs, tolerance):
            shown = example(Pair(ours, theirs, {}, {}, tolerance))
            rows = [("difference", shown)] if shown else []
            return [*rows, (f"expected{label}", show(theirs)), (f"got{label}", show(ours))]
    names = [parameter.name for parameter in load(exercise_id).parameters]
    for name, after, before in zip(names, got.inputs, expected.inputs, strict=False):
        if not same(after, before, 0.0):
            return [(f"{name} before the call", show(before)), (f"{name} after it", show(after))]
    return []


def _compared(
    exercise: Exercise, got: Reply, expected: Reply
) -> Iterator[tuple[str, Any, Any, float]]:
    """Yield what two replies are compared by: (label, ours, theirs, tolerance)."""
    names = [parameter.name for parameter in exercise.parameters]
    yield (
        "",
        exercise.canonical(got.output),
        exercise.canonical(expected.output),
        exercise.tolerance,
    )
    for name, theirs in (expected.gradients or {}).items():
        label = names[int(name)] if name.isdigit() else name
        ours = (got.gradients or {}).get(name)
        if ours is not None or (theirs is not None and theirs.any()):
            yield f" gradient of {label}", ours, theirs, 10 * exercise.tolerance


def show(value: Any) -> str:
    """Show a tensor by dtype, shape and, if they are few, numbers; plain data as Python does.

    Of a float the first eight digits: the last ones differ between processors.
    """
    if isinstance(value, Tensor):
        described = f"{_plain(value.dtype)} {_plain(value.shape)}"
        if value.is_meta:
            return f"{described} on meta"
        if not 0 < value.numel() <= SHOWN_NUMBERS:
            return described
        # by way of lists, since numpy has no bfloat16
        numbers = np.array2string(np.array(value.tolist()), precision=4, suppress_small=True)
        return f"{described}\n{numbers}" if "\n" in numbers else f"{described}  {numbers}"
    if isinstance(value, tuple):
        return "\n".join(f"({i}) {show(item)}" for i, item in enumerate(value)) or "()"
    if isinstance(value, Foreign):
        return kind(value)
    written = repr(float(f"{value:.8g}") if isinstance(value, float) else value)
    if "tensor(" in written:  # which breaks its lines inside of a list
        written = " ".join(written.split())
    return written if len(written) <= SHOWN_CHARACTERS else f"{written[:SHOWN_CHARACTERS]}..."


def _plain(attribute: Any) -> str:
    if isinstance(attribute, torch.Size):
        return str(tuple(attribute))
    return str(attribute).removeprefix("torch.")
