"""What `course grade` prints: lines of printable characters, whatever a student is called."""

import platform
from pathlib import Path

from course_lib.grading.marks.entries import plain
from course_lib.grading.marks.grades import Policy
from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.pipeline import OTHER_EXERCISES, on_other_exercises
from course_lib.grading.reports.shared import statistics
from course_lib.grading.reports.shared.shapes import similar
from course_lib.grading.reports.shared.statistics import to_be_marked
from course_lib.grading.reports.shared.text import count, who
from course_lib.grading.submissions.files import SubmittedFile, some

SHOWN = 20  # lines of a kind


def say_results(
    results: Results, folder: Path, policy: Policy, submitted: list[SubmittedFile]
) -> None:
    """Say how many were graded, what could not be, and what a person is to read."""
    rows = results["submissions"]
    graded = [x for x in rows if x["status"] == "graded"]
    how = f"{results['isolation']}, seed {results['seed']}"
    notebooks = count(sum(bool(x["notebook"]) for x in rows), "notebook")
    say(f"{len(graded)} of {notebooks} graded ({how}).")
    for row in rows:
        if row["status"] != "graded":
            say(f"{row['notebook'] or who(row)}: {row['message']}")
        if policy.roster.people and "name" not in row:
            say(f"{row['student']} is not on the roster, or fits several people.")
    for mark in policy.by_hand.without_place(results):
        where = " ".join(filter(None, (mark.exercise or "extra points", mark.criterion)))
        say(f"A mark has no place here: {mark.student}, {where}.")
    _say_newer_pythons(graded)
    if waiting := to_be_marked(results):
        say(f"{count(waiting, 'answer')} to be marked by hand: {folder / 'marks.csv'}.")
    for row in on_other_exercises(results):
        say(f"{row['notebook']}: {OTHER_EXERCISES} --lesson or --exercise chooses for all.")
    _say_who_is_late(graded, len(policy.lateness.extended(submitted)))
    say_what_to_look_at(results, folder)
    say(f"The class: {folder / 'class.html'}. Grades: {folder / 'grades.csv'}.")


def say_what_was_left_out(names: list[str]) -> None:
    """Name files of the submissions that have no row."""
    if names:
        say(f"Left out, since it is no notebook, or nobody's: {some(names)}.")


def _say_newer_pythons(graded: list[SubmissionResult]) -> None:
    newer = sorted(x["python"] for x in graded if "python" in x)
    if newer:
        say(
            f"{count(len(newer), 'notebook')} of a newer Python, up to {newer[-1]}, than this one, "
            f"{platform.python_version()}: what is new there is no Python here. Grade with "
            f"{newer[-1]} before you believe these marks."
        )


def _say_who_is_late(graded: list[SubmissionResult], extended: int) -> None:
    late = [f"{who(x)}: {x['lateness']}" for x in graded if "lateness" in x]
    if late:
        say(f"{count(len(late), 'notebook')} handed in late:", *_first(late))
    if extended:
        say(f"{count(extended, 'notebook')} in time by an extension alone.")


def say_what_to_look_at(results: Results, folder: Path) -> None:
    """Count what a person is to read, each with the file that has it."""
    verdicts = [
        (row, name, x) for row in statistics.graded(results) for name, x in row["exercises"].items()
    ]
    forbidden = [f"{who(x)}: {name}" for x, name, y in verdicts if y["status"] == "forbidden"]
    if forbidden:
        said = f"{count(len(forbidden), 'answer')} with a forbidden call"
        say(f"{said}, which the feedback pages name:", *_first(forbidden))
    if flagged := statistics.flagged(results):
        say(f"{count(len(flagged), 'answer')} flagged, to be read: {folder / 'class.html'}.")
    if alike := len(similar(results)):
        say(f"{count(alike, 'pair')} of students with similar answers: {folder / 'similar.html'}.")
    if copied := sum("same_as_library" in x for _, _, x in verdicts):
        say(f"{count(copied, 'answer')} equal to the library's own: {folder / 'similar.html'}.")
    if unmarked := statistics.unmarked(results):
        questions = some([f"{name} ({count(n, 'answer')})" for name, n in unmarked.items()])
        say(f"In words, and not marked without a --rubric: {questions}.")


def _first(lines: list[str]) -> list[str]:
    """Keep as many lines as a terminal shows at once."""
    more = [f"... and {len(lines) - SHOWN} more: class.html."] if len(lines) > SHOWN else []
    return [*lines[:SHOWN], *more]


def say(first: str, *more: str) -> None:
    """Print lines; of what a student wrote, a terminal gets printable characters alone."""
    print(plain(first), *(f"  {plain(line)}" for line in more), sep="\n")
