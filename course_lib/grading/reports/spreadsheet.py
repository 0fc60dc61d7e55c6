"""grades.csv: one row a submission, for Excel and LibreOffice."""

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

from course_lib.grading.reports.text import clean, number

# without it Excel reads the file in the machine's old code page and garbles accents;
# LibreOffice and pandas read it either way
BYTE_ORDER_MARK = "\ufeff"
# what begins a formula, at the start of a cell or after what other locales take for its end
FORMULA = re.compile(r"""(^|[;\t\r\n])((?:["']|[^\S\t\r\n])*)([=+\-@＝＋－＠]?)""")


def render(results: dict[str, Any]) -> str:
    """Return the table: a column an exercise, with its points."""
    ids = list(dict.fromkeys(id for x in results["submissions"] for id in x["exercises"]))
    head = ["student", "notebook", "status", "late", "score", "max_score", *ids, "message"]
    rows = [
        [
            submission["student"],
            submission["notebook"],
            submission["status"],
            "yes" if submission["late"] else "no",
            number(submission["score"]),
            number(submission["max_score"]),
            *(_points(submission, id) for id in ids),
            submission["message"],
        ]
        for submission in results["submissions"]
    ]
    return BYTE_ORDER_MARK + table([head, *rows])


def table(rows: Iterable[list[str]]) -> str:
    """Write rows as CSV in which no cell is a formula."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([harmless(cell) for cell in row] for row in rows)
    return file.getvalue()


def harmless(cell: str) -> str:
    """Put an apostrophe before what a spreadsheet would compute."""
    safe = FORMULA.sub(lambda m: f"{m[1]}'{m[2]}{m[3]}" if m[3] else m[0], clean(cell))
    return f"'{safe}" if safe.startswith(("\t", "\r", "\n")) else safe


def _points(submission: dict[str, Any], id: str) -> str:
    verdict = submission["exercises"].get(id)
    return number(verdict["points"]) if verdict else ""
