"""grades.csv: one row a submission, for Excel and LibreOffice."""

from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.reports.shared.table import table
from course_lib.grading.reports.shared.text import number

# without it Excel reads the file in the machine's old code page and garbles accents;
# LibreOffice and pandas read it either way
BYTE_ORDER_MARK = "\ufeff"
COLUMNS = "student name notebook status late score max_score flags".split()


def files(results: Results) -> dict[str, str]:
    """Return the table: a column an exercise, with its points."""
    submissions = results["submissions"]
    ids = dict.fromkeys(exercise_id for x in submissions for exercise_id in x["exercises"])
    head = [*COLUMNS, *ids, "message"]
    rows = [[cells.get(column, "") for column in head] for cells in map(_cells, submissions)]
    return {"grades.csv": BYTE_ORDER_MARK + table([head, *rows])}


def _cells(submission: SubmissionResult) -> dict[str, str]:
    points = {name: number(verdict["points"]) for name, verdict in submission["exercises"].items()}
    return points | {
        "student": submission["student"],
        "name": submission.get("name", ""),
        "notebook": submission["notebook"],
        "status": submission["status"],
        "late": "yes" if submission["late"] else "no",
        "score": number(submission["score"]),
        "max_score": number(submission["max_score"]),
        "flags": "; ".join(_flags(submission)),
        "message": submission["message"],
    }


def _flags(submission: SubmissionResult) -> list[str]:
    return [
        f"{exercise_id}, cell {flag['cell']}, line {flag['line']}: {flag['seen']}"
        for exercise_id, verdict in submission["exercises"].items()
        for flag in verdict.get("flags", [])
    ]
