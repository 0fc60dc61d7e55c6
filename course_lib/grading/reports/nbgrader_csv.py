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

    A notebook that could not be read has the score 0. A student without a notebook has no row,
    since nobody knows for which assignment.
    """
    counted = [x for x in results["submissions"] if x["status"] in ("graded", "unreadable")]
    return {"nbgrader.csv": table([COLUMNS, *map(_row, counted)])}


def _row(submission: SubmissionResult) -> list[str]:
    raw = sum(verdict["points"] for verdict in submission["exercises"].values())
    known = {
        "assignment": _assignment(submission),
        "student_id": submission["student"],
        "email": submission.get("email", ""),
        "raw_score": number(raw),
        "late_submission_penalty": number(max(raw - submission["score"], 0)),
        "score": number(submission["score"]),
        "max_score": number(submission["max_score"]),
    }
    return [known.get(column, "") for column in COLUMNS]


def _assignment(submission: SubmissionResult) -> str:
    file = page_files().get(submission["lesson"] or "")
    return file.stem if file else PurePosixPath(submission["notebook"]).stem
