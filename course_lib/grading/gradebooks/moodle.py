"""Moodle's grading worksheet, with grades and feedback filled in."""

from html import escape

from course_lib.grading.gradebooks.template import (
    FilledTemplate,
    Template,
    by_student,
    factor,
    lost,
    match,
    positive,
)
from course_lib.grading.reports.shared.statistics import exercise_title
from course_lib.grading.reports.shared.text import clean, number, one_line
from course_lib.grading.schema import Results, SubmissionResult

IDENTIFIERS = ("Identifier", "Full name", "Email address", "ID number", "Username")


def fill(results: Results, template: str, scale: float | None = None) -> FilledTemplate:
    """Fill the columns Grade and, where there is one, Feedback comments.

    A student is found by `Participant 1234567` or the number alone, full name, address, or
    number at the university. Notebooks of several lessons add up, and are scaled to the
    worksheet's maximum grade, or to `scale`. A row stays as it was where nothing was graded.
    Raises ValueError where the template is no grading worksheet.
    """
    table = Template(template)
    place = {name: i for i, name in enumerate(table.head)}
    if not {"Identifier", "Grade"} <= set(place):
        raise ValueError(
            "This is no grading worksheet of Moodle: it needs the columns Identifier and Grade; "
            "download it with Moodle's language set to English."
        )
    filled, rows = FilledTemplate(), range(1, len(table.rows))
    rows = [row for row in rows if table.read(row, place["Identifier"])]
    keys = {row: _keys(table, place, row) for row in rows}
    labels = {row: _label(table, place, row) for row in rows}
    submissions = by_student(results)
    possible = [positive(table.read(row, place.get("Maximum Grade", -1))) for row in rows]
    worth = factor("Moodle", submissions, next(iter(possible), None), scale, filled)
    for student, row in match(keys, labels, submissions, filled).items():
        own = submissions[student]
        table.write(row, place["Grade"], number(worth * sum(x["score"] for x in own)))
        if "Feedback comments" in place:
            table.write(row, place["Feedback comments"], _feedback(own, worth))
    filled.text = table.text()
    return filled


def _keys(table: Template, place: dict[str, int], row: int) -> set[str]:
    keys = {table.read(row, place[name]) for name in IDENTIFIERS if name in place}
    number = table.read(row, place["Identifier"]).removeprefix("Participant").strip()
    return (keys | {number}) - {""}


def _label(table: Template, place: dict[str, int], row: int) -> str:
    identifier = table.read(row, place["Identifier"])
    name = table.read(row, place["Full name"]) if "Full name" in place else ""
    return f"{name} ({identifier})" if name else identifier


def _feedback(submissions: list[SubmissionResult], worth: float) -> str:
    """Return the messages as paragraphs, since Moodle reads this cell as HTML."""
    lines = [clean(x["message"]) for x in submissions if x["message"]]
    score, most = (sum(x[key] for x in submissions) for key in ("score", "max_score"))
    total = f"{number(score)} of {number(most)} points"
    if less := lost(submissions):
        total = f"Handed in late: {number(score + less)} less {number(less)} is {total}"
    if worth != 1:
        total += f"; here that is {number(worth * score)} of {number(worth * most)}"
    if less or worth != 1:
        lines.append(f"{total}.")
    for submission in submissions:
        for exercise_id, verdict in submission["exercises"].items():
            points = f"{number(verdict['points'])} of {number(verdict['max_points'])} points"
            title = exercise_title(exercise_id)
            lines.append(f"{title}: {verdict['status']}, {points}. {verdict['message']}")
            if failed := [x["sentence"] for x in verdict.get("properties", []) if not x["held"]]:
                lines.append(f"Does not hold yet: {'; '.join(failed)}.")
    return "".join(f"<p>{escape(one_line(line))}</p>" for line in lines)
