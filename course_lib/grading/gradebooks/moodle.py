"""Moodle's grading worksheet, with grades and feedback filled in."""

from html import escape

from course_lib.grading.gradebooks.template import (
    FilledTemplate,
    Template,
    grades,
    numbered,
    positive,
)
from course_lib.grading.marks.schema import Results

IDENTIFIERS = ("identifier", "full name", "email address", "id number", "username")


def fill(results: Results, template: str, scale: float | None = None) -> FilledTemplate:
    """Fill the columns Grade and, where there is one, Feedback comments.

    A student is found by the number in a name that Moodle made, or else by full name, address,
    or number at the university. Notebooks of several lessons add up, and are scaled to the
    worksheet's maximum grade, or to `scale`. A row stays as it was where nothing was graded.
    Raises ValueError where the template is no grading worksheet.
    """
    table = Template(template)
    place = {name: i for i, name in enumerate(table.head)}
    if not {"identifier", "grade"} <= set(place):
        raise ValueError(
            "This is no grading worksheet of Moodle: it needs the columns Identifier and Grade; "
            "download it with Moodle's language set to English."
        )
    filled = FilledTemplate("Moodle")
    rows = {
        row: (_label(table, place, row), _keys(table, place, row))
        for row in range(1, len(table.rows))
        if table.read(row, place["identifier"])
    }
    most = place.get("maximum grade")
    possible = [positive(table.read(row, most)) for row in rows if most is not None]
    for row, grade, why in grades(results, rows, next(iter(possible), None), scale, filled):
        table.write(row, place["grade"], grade)
        if "feedback comments" in place:
            table.write(row, place["feedback comments"], _html(why))
    filled.text = table.text()
    return filled


def _keys(table: Template, place: dict[str, int], row: int) -> set[str]:
    keys = {table.read(row, place[name]) for name in IDENTIFIERS if name in place}
    identifier = table.read(row, place["identifier"])
    number = identifier.removeprefix("Participant").strip()
    return (keys | {number, numbered(identifier)}) - {""}


def _label(table: Template, place: dict[str, int], row: int) -> str:
    identifier = table.read(row, place["identifier"])
    name = table.read(row, place["full name"]) if "full name" in place else ""
    return f"{name} ({identifier})" if name else identifier


def _html(lines: list[str]) -> str:
    """Return lines as paragraphs, since Moodle reads this cell as HTML."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
