"""grades.csv: one row a submission, for Excel and LibreOffice."""

from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.reports.shared.table import table
from course_lib.grading.reports.shared.text import number

# without it Excel reads the file in the machine's old code page and garbles accents;
# LibreOffice and pandas read it either way
BYTE_ORDER_MARK = "\ufeff"


def files(results: Results) -> dict[str, str]:
    """Return the table: a column an exercise, with its points."""
    ids = list(
        dict.fromkeys(exercise_id for x in results["submissions"] for exercise_id in x["exercises"])
    )
    head = [
        "student",
        "name",
        "notebook",
        "status",
        "late",
        "score",
        "max_score",
        "flags",
        *ids,
        "message",
    ]
    rows = [
        [
            submission["student"],
            submission.get("name", ""),
            submission["notebook"],
            submission["status"],
            "yes" if submission["late"] else "no",
            number(submission["score"]),
            number(submission["max_score"]),
            "; ".join(_flags(submission)),
            *(_points(submission, exercise_id) for exercise_id in ids),
            submission["message"],
        ]
        for submission in results["submissions"]
    ]
    return {"grades.csv": BYTE_ORDER_MARK + table([head, *rows])}


def _flags(submission: SubmissionResult) -> list[str]:
    return [
        f"{exercise_id}, cell {flag['cell']}, line {flag['line']}: {flag['seen']}"
        for exercise_id, verdict in submission["exercises"].items()
        for flag in verdict.get("flags", [])
    ]


def _points(submission: SubmissionResult, exercise_id: str) -> str:
    verdict = submission["exercises"].get(exercise_id)
    return number(verdict["points"]) if verdict else ""
