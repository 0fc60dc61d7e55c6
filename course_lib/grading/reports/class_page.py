"""class.html: how the class did, and what to say again on Monday."""

from typing import Any

from course_lib.grading.reports import facts
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
        lessons=[facts.lesson_title(lesson) for lesson in lessons],
        graded=facts.graded(results),
        students=len({x["student"] for x in submissions}),
        median=facts.median_share(results),
        distribution=facts.distribution(results),
        exercises=facts.exercises(results),
        SHOWN=SHOWN,
        mistakes=facts.known_mistakes(results),
        named=list(zip(names(results), submissions, strict=True)),
    )
