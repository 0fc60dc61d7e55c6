"""summary.md: the step summary of a CI run, in GitHub's Markdown."""

import re

from course_lib.grading.marks.schema import Results
from course_lib.grading.reports.shared import statistics
from course_lib.grading.reports.shared.text import count, number, one_line, who

SHOWN = 10  # rows of a table; the class page has them all
SYNTAX = re.compile(r"([\\`*_\[\]|~#!$@:])")


def files(results: Results) -> dict[str, str]:
    """Return the summary: totals, distribution, hardest exercises, known mistakes, not graded."""
    submissions, graded = results["submissions"], statistics.graded(results)
    share = statistics.median_share(results)
    median = "" if share is None else f", with a median of {share:.0%} of the points"
    notebooks = count(sum(bool(x["notebook"]) for x in submissions), "notebook")
    parts = [
        "# Grades",
        f"{len(graded)} of {notebooks} graded{median}. "
        f"Isolation: {results['isolation']}; seed of the inputs: {results['seed']}.",
    ]
    if share is not None:
        bars = enumerate(statistics.distribution(results))
        rows = [[_tenth(i), str(n), "█" * round(40 * n / len(graded))] for i, n in bars]
        parts += ["## Distribution", _table(["points", "-submissions", ""], rows)]
    if exercises := statistics.exercises(results):
        rows = [
            [
                statistics.exercise_title(x.exercise_id),
                x.exercise_id,
                f"{x.passed:.0%}",
                f"{number(x.mean_points)} of {number(x.max_points)}",
            ]
            for x in exercises[:SHOWN]
        ]
        head = ["exercise", "id", "-passed", "-mean points"]
        parts += ["## Hardest exercises", _table(head, rows)]
    if mistakes := statistics.known_mistakes(results):
        rows = [
            [str(len(x.submissions)), statistics.exercise_title(x.exercise_id), x.message]
            for x in mistakes[:SHOWN]
        ]
        head = ["-students", "exercise", "mistake"]
        parts += ["## What to say again on Monday", _table(head, rows)]
    if left := [x for x in submissions if x["status"] != "graded"]:
        rows = [[who(x), x["notebook"], x["status"], x["message"]] for x in left]
        head = ["student", "notebook", "status", "why"]
        parts += ["## Not graded", _table(head, rows)]
    return {"summary.md": "\n\n".join(parts) + "\n"}


def _table(head: list[str], rows: list[list[str]]) -> str:
    """Write a table; a - before the name of a column puts its cells to the right."""
    rules = ["-:" if name.startswith("-") else ":-" for name in head]
    cells = [[_cell(name.removeprefix("-")) for name in head], rules]
    cells += [[_cell(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _cell(text: str) -> str:
    """Write a string so that Markdown shows it as it is."""
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SYNTAX.sub(r"\\\1", plain)


def _tenth(i: int) -> str:
    return f"{100 * i // statistics.BARS} to {100 * (i + 1) // statistics.BARS}%"
