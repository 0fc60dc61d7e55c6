"""class.html: how the class did, and what to say again on Monday."""

from course_lib.grading.marks.schema import Results
from course_lib.grading.reports.shared import statistics
from course_lib.grading.reports.shared.names import names
from course_lib.grading.reports.shared.pages import render as page
from course_lib.grading.reports.shared.shapes import own_lines

SHOWN = 10  # known mistakes; the rarer ones unfold
STUDENTS = 5  # whose own lines are shown for each


def files(results: Results) -> dict[str, str]:
    """Return the page, which links to the feedback pages in the folder feedback/ beside it."""
    submissions = results["submissions"]
    lessons = sorted({x["lesson"] for x in submissions if x["lesson"]})
    text = page(
        "class.html",
        results=results,
        lessons=[statistics.lesson_title(lesson) for lesson in lessons],
        graded=statistics.graded(results),
        notebooks=sum(bool(x["notebook"]) for x in submissions),
        students=len({x["student"] for x in submissions}),
        median=statistics.median_share(results),
        distribution=statistics.distribution(results),
        exercises=statistics.exercises(results),
        SHOWN=SHOWN,
        STUDENTS=STUDENTS,
        own_lines=own_lines,
        mistakes=statistics.known_mistakes(results),
        flagged=statistics.flagged(results),
        named=list(zip(names(results), submissions, strict=True)),
    )
    return {"class.html": text}
