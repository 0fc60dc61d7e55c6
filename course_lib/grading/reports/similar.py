"""similar.html: answers that share structure, side by side; for instructors, no student sees it."""

from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.reports.shared.pages import render
from course_lib.grading.reports.shared.shapes import similar
from course_lib.grading.reports.shared.statistics import graded

SHOWN = 50  # pairs


def files(results: Results) -> dict[str, str]:
    """Return the page: pairs of answers, and what else to look at by eye."""
    submissions, pairs = graded(results), similar(results)
    page = render(
        "similar.html",
        results=results,
        pairs=[
            ([submissions[place] for place in pair], found)
            for pair, found in list(pairs.items())[:SHOWN]
        ],
        more=max(len(pairs) - SHOWN, 0),
        copied=_marked(submissions, "same_as_library"),
        dispatched=_marked(submissions, "dispatched"),
    )
    return {"similar.html": page}


def _marked(
    submissions: list[SubmissionResult], field: str
) -> list[tuple[SubmissionResult, dict[str, bool | list[str]]]]:
    """List the submissions with answers that a field of their results marks."""
    marked = [
        (x, {name: y[field] for name, y in x["exercises"].items() if y.get(field)})
        for x in submissions
    ]
    return [(submission, answers) for submission, answers in marked if answers]
