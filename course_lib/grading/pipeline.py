"""From submissions to a folder of results."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tqdm import tqdm

from course_lib.files.atomic import write_atomically
from course_lib.grading import reports
from course_lib.grading.judging.rules import Rules
from course_lib.grading.marks.entries import plain, unreadable
from course_lib.grading.marks.grades import Policy, as_json, results
from course_lib.grading.marks.schema import EXTRA, Entry, Results, SubmissionResult
from course_lib.grading.submissions.files import SubmittedFile, Unreadable
from course_lib.grading.submissions.journal import Journal, fingerprint

OTHER_EXERCISES = "The score is made of other exercises than that of most students here."
Judging = Callable[[Rules, list[SubmittedFile]], Iterator[tuple[SubmittedFile, str, Entry]]]


def grade(
    submitted: list[SubmittedFile], rules: Rules, folder: Path, policy: Policy, judging: Judging
) -> Results:
    """Judge what was handed in, write results and reports into a folder, return the results.

    A run that was killed goes on where it stopped, until its journal is finished. Raises
    NoIsolation, OtherRules, OSError.
    """
    journal = Journal(folder)
    judged_before = journal.begin(rules)
    judged, work = [], []
    for one in submitted:
        entry = _at_once(one, judged_before)
        if entry:
            judged.append((one, entry))
        else:
            work.append(one)
    with tqdm(total=len(submitted), initial=len(judged), unit="notebook", disable=not work) as bar:
        for one, sha256, entry in judging(rules, work):
            journal.add(one.notebook, sha256, entry)
            judged.append((one, entry))
            bar.update()
    graded = results(rules, judged, policy)
    for row in on_other_exercises(graded):
        row["message"] = plain(f"{OTHER_EXERCISES} {row['message']}")
    write_atomically(folder / "results.json", as_json(graded))
    reports.write(graded, folder)
    return graded


def _at_once(one: SubmittedFile, known: dict[tuple[str, str], Entry]) -> Entry | None:
    """Return the entry of what is not to be judged: it cannot be, or it has been."""
    if one.problem:
        return unreadable(one.problem)
    if not one.notebook:
        return unreadable("There is no notebook here.", status="missing")
    try:
        return known.get((one.notebook, fingerprint(one.content())))
    except Unreadable as error:
        return unreadable(str(error))


def on_other_exercises(results: Results) -> list[SubmissionResult]:
    """List graded notebooks whose score is not made of the same exercises as most students'.

    Where no lesson is named, a notebook's own metadata choose them, and a student writes these. It
    is said, and not refused: a folder may well hold notebooks of several lessons.
    """
    graded = [row for row in results["submissions"] if row["status"] == "graded"]
    exercises: dict[str, set[str]] = defaultdict(set)
    for row in graded:
        exercises[row["student"]] |= row["exercises"].keys() - {EXTRA}
    for usual, students in Counter(map(frozenset, exercises.values())).most_common(1):
        if 2 * students > len(exercises):
            return [
                row
                for row in graded
                if usual - exercises[row["student"]] or row["exercises"].keys() - usual - {EXTRA}
            ]
    return []
