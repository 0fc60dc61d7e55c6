"""class.html: how the class did, and what to say again on Monday."""

from typing import Any

from course_lib.grading.reports import statistics
from course_lib.grading.reports.names import names
from course_lib.grading.reports.pages import render as page

SHOWN = 10  # known mistakes; the rarer ones unfold


def render(results: dict[str, Any]) -> str:
    """Return the page; it links to the feedback pages in the folder feedback/ beside it."""
    submissions = results["submissions"]
    lessons = sorted({x["lesson"] for x in submissions if x["lesson"]})
    return page(
        "class.html",
        results=results,
        lessons=[statistics.lesson_title(lesson) for lesson in lessons],
        graded=statistics.graded(results),
        students=len({x["student"] for x in submissions}),
        median=statistics.median_share(results),
        distribution=statistics.distribution(results),
        exercises=statistics.exercises(results),
        SHOWN=SHOWN,
        mistakes=statistics.known_mistakes(results),
        named=list(zip(names(results), submissions, strict=True)),
    )
