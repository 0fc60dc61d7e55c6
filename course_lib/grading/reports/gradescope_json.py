"""Gradescope's results.json, one a submission."""

import json
from typing import Any

from course_lib.grading.reports.names import names
from course_lib.grading.reports.statistics import exercise_title
from course_lib.grading.reports.text import clean


def render(results: dict[str, Any]) -> dict[str, str]:
    """Return each submission's file by its name, `ada-03_self_attention.json`."""
    files = zip(names(results), results["submissions"], strict=True)
    return {f"{name}.json": document(submission) for name, submission in files}


def document(submission: dict[str, Any]) -> str:
    """Return the results.json of one submission; its score is that after a late penalty."""
    tests = [
        {
            "name": exercise_title(id),
            "score": verdict["points"],
            "max_score": verdict["max_points"],
            "status": "passed" if verdict["status"] == "passed" else "failed",
            "output": clean(f"{id}: {verdict['status']}. {verdict['message']}"),
            "output_format": "text",
            "visibility": "visible",
        }
        for id, verdict in submission["exercises"].items()
    ]
    content = {
        "score": submission["score"],
        "output": clean(submission["message"]),
        "output_format": "text",
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    return json.dumps(content, indent=2) + "\n"
