"""The gradebook that Canvas exports, with one assignment's grades filled in."""

import re

from course_lib.grading.gradebooks.template import (
    NO_MORE_PENALTIES,
    FilledTemplate,
    Template,
    by_student,
    factor,
    lost,
    match,
    numbered,
    positive,
)
from course_lib.grading.marks.schema import Results
from course_lib.grading.reports.shared.text import number

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
    column, filled = _column(table.head, assignment), FilledTemplate()
    places = [table.head.index(name) for name in IDENTIFIERS if name in table.head]
    name, number_column = table.head.index("Student"), table.head.index("ID")
    rows = [row for row in range(1, len(table.rows)) if table.read(row, number_column)]
    keys = {row: {table.read(row, place) for place in places} - {""} for row in rows}
    for row in rows:
        keys[row].add(numbered(table.read(row, number_column)))
    labels = {row: table.read(row, name) for row in rows}
    submissions = by_student(results)
    possible = [
        positive(table.read(row, column))
        for row in range(1, len(table.rows))
        if table.read(row, name) == "Points Possible"
    ]
    worth = factor("Canvas", submissions, next(iter(possible), None), scale, filled)
    for student, row in match(keys, labels, submissions, filled).items():
        table.write(row, column, number(worth * sum(x["score"] for x in submissions[student])))
    if any(map(lost, submissions.values())):
        filled.remarks.append(NO_MORE_PENALTIES)
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
