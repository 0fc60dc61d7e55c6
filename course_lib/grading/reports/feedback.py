"""A page for each submission: what was seen in each exercise, and what to do next."""

from typing import Any

from course_lib.grading.reports.names import names
from course_lib.grading.reports.pages import render as page

NEXT = {
    "known mistake": "Stuck? `course hint {}` asks a question that helps.",
    "wrong": "Stuck? `course hint {}` asks a question that helps.",
    "error": "Try it with `check` in your notebook; `course hint {}` asks a question that helps.",
    "forbidden": "Which simpler steps is it made of? `course hint {}` asks where to begin.",
    "not attempted": "`course hint {}` asks a question to begin with.",
}
INSTEAD = {
    "unreadable": "Open the notebook in Jupyter, save it, and hand it in again.",
    "missing": "Hand in the notebook of the lesson, a file that ends in .ipynb.",
    "superseded": "There is nothing to do: the page of the notebook that counts has your grade.",
}


def render(results: dict[str, Any]) -> dict[str, str]:
    """Return each submission's page by its file name, `ada-03_self_attention.html`."""
    files = zip(names(results), results["submissions"], strict=True)
    return {f"{name}.html": _page(results, submission) for name, submission in files}


def _page(results: dict[str, Any], submission: dict[str, Any]) -> str:
    verdicts = submission["exercises"]
    return page(
        "feedback.html",
        results=results,
        submission=submission,
        raw=sum(verdict["points"] for verdict in verdicts.values()),
        passed=sum(verdict["status"] == "passed" for verdict in verdicts.values()),
        next={id: NEXT.get(verdicts[id]["status"], "").format(id) for id in verdicts},
        instead=INSTEAD.get(submission["status"], ""),
    )
