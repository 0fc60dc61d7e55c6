"""nbgrader.csv: the columns of nbgrader's own export, for tools that read it."""

from pathlib import PurePosixPath

from course_lib.files.course_map import page_files
from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.reports.shared.table import table
from course_lib.grading.reports.shared.text import number

COLUMNS = (
    "assignment duedate timestamp student_id last_name first_name email raw_score"
    " late_submission_penalty score max_score"
).split()


def files(results: Results) -> dict[str, str]:
    """Return the table: a row for each student and assignment, none for a superseded notebook.

    What was not graded has no row, or the score 0 with `--missing zero`.
    """
    zero = results.get("missing") == "zero"
    statuses = ("graded", "unreadable", "missing") if zero else ("graded",)
    counted = [x for x in results["submissions"] if x["status"] in statuses]
    lessons = {x["lesson"] for x in counted if x["status"] == "graded"}
    only = next(iter(lessons)) if len(lessons) == 1 else None
    return {"nbgrader.csv": table([COLUMNS, *(_row(x, x["lesson"] or only) for x in counted)])}


def _row(submission: SubmissionResult, lesson: str | None) -> list[str]:
    raw = sum(verdict["points"] for verdict in submission["exercises"].values())
    known = {
        "assignment": _assignment(submission, lesson),
        "student_id": submission["student"],
        "email": submission.get("email", ""),
        "raw_score": number(raw),
        "late_submission_penalty": number(max(raw - submission["score"], 0)),
        "score": number(submission["score"]),
        "max_score": number(submission["max_score"]),
    }
    return [known.get(column, "") for column in COLUMNS]


def _assignment(submission: SubmissionResult, lesson: str | None) -> str:
    file = page_files().get(lesson or "")
    return file.stem if file else PurePosixPath(submission["notebook"]).stem
