"""The gradebook that Canvas exports, with one assignment's grades filled in."""

import re

from course_lib.grading.gradebooks.template import (
    FilledTemplate,
    Template,
    grades,
    name_key,
    numbered,
    positive,
)
from course_lib.grading.marks.schema import Results

IDENTIFIERS = ("id", "sis login id", "sis user id", "student")


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
    if not {"student", "id"} <= set(table.head):
        raise ValueError(
            "This is no gradebook of Canvas: it needs the columns Student and ID in its first row."
        )
    column, filled = _column(table.names, assignment), FilledTemplate("Canvas")
    places = [table.head.index(name) for name in IDENTIFIERS if name in table.head]
    name, number_column = table.head.index("student"), table.head.index("id")
    rows = {}
    for row in range(1, len(table.rows)):
        if number := table.read(row, number_column):
            keys = {numbered(number), *(table.read(row, place) for place in places)}
            rows[row] = table.read(row, name), keys - {""}
    possible = [
        positive(table.read(row, column))
        for row in range(1, len(table.rows))
        if table.read(row, name).lower() == "points possible"
    ]
    for row, grade, _ in grades(results, rows, next(iter(possible), None), scale, filled):
        table.write(row, column, grade)
    filled.text = table.text()
    return filled


def _column(names: list[str], assignment: str) -> int:
    found = {i: re.fullmatch(r"(.*) \(\d+\)", name) for i, name in enumerate(names)}
    meant = name_key(assignment)
    wanted = [i for i, x in found.items() if x and meant in map(name_key, (x[0], x[1]))]
    if len(wanted) == 1:
        return wanted[0]
    assignments = ", ".join(match[0] for match in found.values() if match) or "none"
    which = "several columns" if wanted else "no column"
    raise ValueError(f"There is {which} {assignment!r}; the assignments are: {assignments}.")
