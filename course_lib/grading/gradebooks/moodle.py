"""Moodle's grading worksheet, with grades and feedback filled in."""

from html import escape

from course_lib.grading.gradebooks.template import FilledTemplate, Template, by_student, match
from course_lib.grading.reports.shared.statistics import exercise_title
from course_lib.grading.reports.shared.text import clean, number, one_line
from course_lib.grading.schema import Results, SubmissionResult

IDENTIFIERS = ("Identifier", "Full name", "Email address", "ID number", "Username")


def fill(results: Results, template: str) -> FilledTemplate:
    """Fill the columns Grade and, where there is one, Feedback comments.

    A student is found by `Participant 1234567` or the number alone, full name, address, or
    number at the university. Notebooks of several lessons add up. A row stays as it was where
    nothing was graded. Raises ValueError where the template is no grading worksheet.
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
    other_scale = set()
    for student, row in match(keys, labels, submissions, filled).items():
        own = submissions[student]
        table.write(row, place["Grade"], number(sum(x["score"] for x in own)))
        if "Feedback comments" in place:
            table.write(row, place["Feedback comments"], _feedback(own))
        most = sum(x["max_score"] for x in own)
        written = table.read(row, place["Maximum Grade"]) if "Maximum Grade" in place else ""
        if written and written.replace(",", ".") not in (number(most), f"{most:.2f}"):
            other_scale.add((written, number(most)))
    filled.remarks += [
        f"Moodle has {written} points for this assignment, and these results have {most}."
        for written, most in sorted(other_scale)
    ]
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


def _feedback(submissions: list[SubmissionResult]) -> str:
    """Return the messages as paragraphs, since Moodle reads this cell as HTML."""
    lines = [clean(x["message"]) for x in submissions if x["message"]]
    for submission in submissions:
        for exercise_id, verdict in submission["exercises"].items():
            points = f"{number(verdict['points'])} of {number(verdict['max_points'])} points"
            title = exercise_title(exercise_id)
            lines.append(f"{title}: {verdict['status']}, {points}. {verdict['message']}")
    return "".join(f"<p>{escape(one_line(line))}</p>" for line in lines)
