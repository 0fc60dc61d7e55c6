"""A verdict as a panel: one text face for terminals, one HTML face for Lab."""

import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from course_lib.checking.catalogue import load
from course_lib.checking.explain.failing_case import Section, case_sections
from course_lib.checking.looks import COLOURS, MARKS, ROW_COLOURS, SIGNS, code, templates
from course_lib.checking.notebook.progress import standing
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.checking.verdict import Verdict
from course_lib.files.course_map import printed_solution
from course_lib.files.workspace import Workspace

COMMAND = re.compile(r'`(\w+)\("([^"]+)"\)`')
LINES = "max-width:60em;line-height:1.45"


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
        sections += case_sections(verdict, failure)
    if verdict.printed:
        sections.append(Section("Your code printed:", [("", verdict.printed.rstrip())]))
    if verdict.properties:
        sections.append(_tried(verdict))
    return sections


def _tried(verdict: Verdict) -> Section:
    """Count what holds, and list it."""
    held = sum(result.held is True for result in verdict.properties)
    heading = (
        f"Tried: {verdict.cases_held} of {verdict.cases} cases and {held} of "
        f"{len(verdict.properties)} properties hold."
    )
    rows = [(MARKS[held], f"{said} ({points})") for said, points, held in verdict.properties]
    return Section(heading, rows, folded=True)
