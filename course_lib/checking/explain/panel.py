"""A verdict as a panel: one text face for terminals, one HTML face for Lab."""

import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from markupsafe import Markup
from torch import Tensor

from course_lib.answers.answer import Foreign, Reply
from course_lib.checking.catalogue import load
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain.difference import Pair, example, kind
from course_lib.checking.looks import COLOURS, MARKS, ROW_COLOURS, SIGNS, code, templates
from course_lib.checking.notebook.progress import standing
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.checking.run.trial import same
from course_lib.checking.verdict import Failure, Verdict
from course_lib.files.course_map import printed_solution
from course_lib.files.workspace import Workspace

SHOWN_NUMBERS, SHOWN_LINES = 24, 5
SHOWN_CHARACTERS, BRIEF_CHARACTERS = 300, 40
COMMAND = re.compile(r'`(\w+)\("([^"]+)"\)`')
LINES = "max-width:60em;line-height:1.45"
Rows = list[tuple[str, str]]


class Section(NamedTuple):
    """A part of a panel: a heading and rows of (label, value), `folded` where few need it."""

    heading: str
    rows: Rows
    folded: bool = False


def text(
    verdict: Verdict,
    everything: bool = False,
    of_several: bool = False,
    in_terminal: bool = False,
) -> str:
    """Show a verdict as plain text: of what is folded the headings alone, or else `everything`.

    One `of_several` that are told one after another does not say where the learner is. A terminal
    is told commands.
    """
    sign, headline = _headline(verdict)
    said = filter(None, (headline, verdict.message, stays(verdict)))
    lines, sections = [f"{sign} {next(said)}", *(f"  {x}" for x in said)], _sections(verdict)
    for section in sections:
        closed = section.folded and not everything
        width = max((len(label) for label, _ in section.rows), default=0)
        lines += [f"  {section.heading}"] if section.folded else ["", f"  {section.heading}"]
        for label, value in [] if closed else section.rows:
            first, *rest = value.splitlines() or [""]
            lines.append(f"    {label:<{width}}  {first}".rstrip())
            lines += [f"    {'':<{width}}  {line}" for line in rest]
    steps = _next_steps(verdict)[: 1 if of_several else None]
    if in_terminal:
        steps[0] = COMMAND.sub(r"`course \1 \2`", steps[0])
    if not everything and any(section.folded for section in sections):
        steps[0] += " `course check --all` unfolds the rest."
    return "\n".join([*lines, *(f"  {step}" for step in steps)])


def html(verdict: Verdict, in_notebook: bool = True) -> str:
    """Show a verdict as HTML that follows the colours of the page around it.

    In a notebook it says what to do next, and brings the solution where an answer has passed.
    """
    solved = verdict.status == "passed" and in_notebook
    sign, headline = _headline(verdict)
    return _template().render(
        colour=COLOURS.get(verdict.status, ROW_COLOURS[False]),
        lines=LINES,
        sign=sign,
        headline=headline,
        message=verdict.message,
        stays=stays(verdict) if in_notebook else None,
        sections=_sections(verdict),
        solution=_solution(verdict.exercise) if solved else "",
        # the solution is there already, folded
        next_steps=_next_steps(verdict)[solved:] if in_notebook else (),
        signs={MARKS[held]: ROW_COLOURS.get(held, "inherit") for held in MARKS},
    )


def stays(verdict: Verdict) -> str | None:
    """Say that an answer which has passed before is not lost by this verdict, if there is one."""
    workspace = Workspace.find()
    if verdict.status == "passed" or not workspace:
        return None
    if kept := workspace.kept(verdict.exercise):
        day = "" if kept.date() == date.today() else f"{kept:%d %B} "
        return f"Your answer of {day}{kept:%H:%M} has passed and stays: `mine` uses it."
    passed = workspace.record(verdict.exercise).passed
    return "An earlier answer of yours has passed, and that stays." if passed else None


def plain_html(told: str) -> str:
    """Show sentences as HTML: Jupyter breaks the lines of what is printed inside of words."""
    lines = [Markup("<div>{}</div>").format(code(line)) for line in told.splitlines()]
    return Markup('<div style="{}">{}</div>').format(LINES, Markup("").join(lines))


def failing_case(verdict: Verdict) -> tuple[str, Rows] | None:
    """Show the smallest case that failed, if one did: a heading, and rows of (label, value)."""
    failure = verdict.failure
    if not failure or not failure.got:
        return None
    outcome, inputs = _outcome(verdict.exercise, failure), _inputs(verdict.exercise, failure)
    return _case_heading(failure), [*outcome, *inputs]


def _solution(exercise_id: str) -> str:
    """Return what `solution` prints: the reference, behind its helpers."""
    return printed_solution(exercise_id) or solution_text(load(exercise_id))


@cache
def _template() -> Any:
    return templates(Path(__file__).parent).get_template("panel.html")


def _headline(verdict: Verdict) -> tuple[str, str]:
    """Return the sign of a verdict, and what it says in a line."""
    said = {"passed": "passed", "not attempted": "not attempted yet"}.get(verdict.status, "not yet")
    points = f"{verdict.points} of {verdict.max_points} points"
    return SIGNS.get(verdict.status, "✗"), f"{verdict.exercise}: {said}, {points}"


def _next_steps(verdict: Verdict) -> list[str]:
    """Say what to do now: read a hint, or go on."""
    if verdict.status != "passed":
        return [f'Stuck? `hint("{verdict.exercise}")` asks a question that helps.']
    return [
        f'`solution("{verdict.exercise}")` prints the library\'s version.',
        str(standing(verdict.exercise, has_passed=True)),
    ]


def _sections(verdict: Verdict) -> list[Section]:
    """List the parts of a panel below its message."""
    sections, failure = [], verdict.failure
    if failure and failure.error and failure.error.line:
        error, said = failure.error, f"{failure.error.type}: {failure.error.message}"
        where = [(f"line {error.line}", error.text or "")]
        where += [("", said)] if error.message and error.message not in verdict.message else []
        sections.append(Section("Raised in your code:", where))
    if failure and failure.got:
        sections += _case(verdict, failure)
    if verdict.printed:
        sections.append(Section("Your code printed:", [("", verdict.printed.rstrip())]))
    if verdict.properties:
        sections.append(_tried(verdict))
    return sections


def _case(verdict: Verdict, failure: Failure) -> list[Section]:
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


def _tried(verdict: Verdict) -> Section:
    """Count what holds, and list it."""
    held = sum(result.held is True for result in verdict.properties)
    heading = (
        f"Tried: {verdict.cases_held} of {verdict.cases} cases and {held} of "
        f"{len(verdict.properties)} properties hold."
    )
    rows = [(MARKS[held], f"{said} ({points})") for said, points, held in verdict.properties]
    return Section(heading, rows, folded=True)


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
