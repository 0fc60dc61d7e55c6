"""The gradebook that Canvas exports, with one assignment's grades filled in."""

import re

from course_lib.grading.gradebooks.template import (
    FilledTemplate,
    Template,
    grades,
    numbered,
    positive,
)
from course_lib.grading.marks.schema import Results

IDENTIFIERS = ("ID", "SIS Login ID", "SIS User ID", "Student")


def fill(
    results: Results, template: str, assignment: str, scale: float | None = None
) -> FilledTemplate:
    """Fill an assignment's column: `Lesson 03 (12345)`, or its name without the number.

    A student is found by the ID in a file's name that Canvas made, or else by login or name.
    Notebooks of several lessons add up, and are scaled to the assignment's points, or to `scale`.
    A cell stays as it was where nothing was graded. Raises ValueError where the template is no
    gradebook of Canvas, or has no such column.
    """
    table = Template(template)
    if not {"Student", "ID"} <= set(table.head):
        raise ValueError(
            "This is no gradebook of Canvas: it needs the columns Student and ID in its first row."
        )
    column, filled = _column(table.head, assignment), FilledTemplate("Canvas")
    places = [table.head.index(name) for name in IDENTIFIERS if name in table.head]
    name, number_column = table.head.index("Student"), table.head.index("ID")
    rows = {}
    for row in range(1, len(table.rows)):
        if number := table.read(row, number_column):
            keys = {numbered(number), *(table.read(row, place) for place in places)}
            rows[row] = table.read(row, name), keys - {""}
    possible = [
        positive(table.read(row, column))
        for row in range(1, len(table.rows))
        if table.read(row, name) == "Points Possible"
    ]
    for row, grade, _ in grades(results, rows, next(iter(possible), None), scale, filled):
        table.write(row, column, grade)
    filled.text = table.text()
    return filled


def _column(head: list[str], assignment: str) -> int:
    names = {i: re.fullmatch(r"(.*) \(\d+\)", name) for i, name in enumerate(head)}
    wanted = [i for i, match in names.items() if match and assignment in (match[0], match[1])]
    if len(wanted) == 1:
        return wanted[0]
    assignments = ", ".join(match[0] for match in names.values() if match) or "none"
    which = "several columns" if wanted else "no column"
    raise ValueError(f"There is {which} {assignment!r}; the assignments are: {assignments}.")
