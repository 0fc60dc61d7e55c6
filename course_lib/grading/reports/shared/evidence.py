"""Why an answer has its points, as lines of text: what held, and the case that failed."""

from course_lib.checking.statuses import MARKS
from course_lib.grading.marks.schema import ExerciseResult
from course_lib.grading.reports.shared.text import clean, number, one_line


def property_lines(verdict: ExerciseResult) -> list[str]:
    """Write each property on a line: whether it held, and its points."""
    return [
        f"{MARKS[x['held']]} {one_line(x['sentence'])} ({points(x['points'])})"
        for x in verdict.get("properties", [])
    ]


def case_lines(verdict: ExerciseResult) -> list[str]:
    """Write the case that failed: its values one below the other, each behind its name."""
    case = verdict.get("case")
    if not case:
        return []
    lines = [f"{one_line(case['heading'])}:"]
    for label, value in case["values"].items():
        first, *rest = clean(value).split("\n")
        lines += [f"  {one_line(label)}: {first}", *(f"    {line}" for line in rest)]
    return lines


def points(value: float) -> str:
    """Write a number of points: 1 point, 2.5 points."""
    return f"{number(value)} {'point' if value == 1 else 'points'}"
