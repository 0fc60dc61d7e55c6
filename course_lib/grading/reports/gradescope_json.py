"""gradescope/NAME.json: Gradescope's results.json, one a submission."""

import json

from course_lib.checking.looks import MARKS
from course_lib.grading.marks.schema import (
    ExerciseResult,
    PropertyResult,
    Results,
    SubmissionResult,
)
from course_lib.grading.reports.shared.names import names
from course_lib.grading.reports.shared.statistics import exercise_title
from course_lib.grading.reports.shared.text import clean, one_line, points


def files(results: Results) -> dict[str, str]:
    """Return each submission's file, `gradescope/ada-03_self_attention.json`."""
    named = zip(names(results), results["submissions"], strict=True)
    return {f"gradescope/{name}.json": document(submission) for name, submission in named}


def document(submission: SubmissionResult) -> str:
    """Return the results.json of one submission; its score is that after a late penalty."""
    tests = [
        {
            "name": exercise_title(exercise_id),
            "score": verdict["points"],
            "max_score": verdict["max_points"],
            "status": "passed" if verdict["status"] == "passed" else "failed",
            "output": _output(exercise_id, verdict),
            "output_format": "text",
            "visibility": "visible",
        }
        for exercise_id, verdict in submission["exercises"].items()
    ]
    content = {
        "score": submission["score"],
        "output": clean(submission["message"]),
        "output_format": "text",
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    return json.dumps(content, indent=2) + "\n"


def _untried(tried: PropertyResult) -> str:
    return ", not tried" if tried["held"] is None else ""


def _output(exercise_id: str, verdict: ExerciseResult) -> str:
    """Say why an answer has its points: what holds, and the values of the case that failed."""
    lines = [clean(f"{exercise_id}: {verdict['status']}. {verdict['message']}")]
    lines += [
        f"{MARKS[x['held']]} {one_line(x['sentence'])} ({points(x['points'])}{_untried(x)})"
        for x in verdict.get("properties", [])
    ]
    if case := verdict.get("case"):
        lines.append(f"{one_line(case['heading'])}:")
        for label, value in case["values"].items():
            first, *rest = clean(value).split("\n")
            lines += [f"  {one_line(label)}: {first}", *(f"    {line}" for line in rest)]
    return "\n".join(lines)
