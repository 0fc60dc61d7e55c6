"""feedback/NAME.html: what was seen in each exercise of a submission, and what to do next."""

from course_lib.grading.marks.schema import BY_HAND, Results, SubmissionResult
from course_lib.grading.reports.shared.names import names
from course_lib.grading.reports.shared.pages import render as page
from course_lib.grading.reports.shared.statistics import most, to_be_marked

NEXT = {
    "known mistake": "Stuck? `course hint {}` asks a question that helps.",
    "wrong": "Stuck? `course hint {}` asks a question that helps.",
    "error": "Try it with `check` in your notebook; `course hint {}` asks a question that helps.",
    "forbidden": "Which simpler steps is it made of? `course hint {}` asks where to begin.",
    "not attempted": "`course hint {}` asks a question to begin with.",
}
INSTEAD = {
    "unreadable": "Hand in the lesson's notebook, saved in Jupyter as a file that ends in .ipynb.",
    "missing": "Hand in the notebook of the lesson, a file that ends in .ipynb.",
    "superseded": "There is nothing to do: the page of the notebook that counts has your grade.",
}


def files(results: Results) -> dict[str, str]:
    """Return each submission's page, `feedback/ada-03_self_attention.html`."""
    named = zip(names(results), results["submissions"], strict=True)
    scales = _other_scales(results)
    return {f"feedback/{name}.html": _page(results, one, scales) for name, one in named}


def _page(results: Results, submission: SubmissionResult, scales: dict[str, float]) -> str:
    verdicts = submission["exercises"]
    return page(
        "feedback.html",
        results=results,
        submission=submission,
        raw=sum(verdict["points"] for verdict in verdicts.values()),
        passed=sum(verdict["status"] == "passed" for verdict in verdicts.values()),
        # the score, and what could be won, in each gradebook that counts otherwise
        gradebooks={
            name: [submission[key] * scale for key in ("score", "max_score")]
            for name, scale in scales.items()
        },
        next={
            exercise_id: NEXT.get(verdict["status"], "").format(exercise_id)
            for exercise_id, verdict in verdicts.items()
            if not exercise_id.startswith(BY_HAND)  # nobody has hints for these
        },
        instead=INSTEAD.get(submission["status"], ""),
    )


def _other_scales(results: Results) -> dict[str, float]:
    """Return what a point is worth in each gradebook that counts otherwise."""
    total = most(results)
    if not total or to_be_marked(results):  # no gradebook is written yet
        return {}
    gradebooks = results.get("gradebooks", {})
    return {name: points / total for name, points in gradebooks.items() if points != total}
