"""From submissions to a folder of results."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tqdm import tqdm

from course_lib.files.atomic import write_atomically
from course_lib.grading import reports
from course_lib.grading.grades import Policy, as_json, results
from course_lib.grading.judge import Rules, unreadable
from course_lib.grading.schema import Entry, Results
from course_lib.grading.submissions import SubmittedFile
from course_lib.grading.workers import Journal, fingerprint

Judging = Callable[[Rules, list[SubmittedFile]], Iterator[tuple[SubmittedFile, str, Entry]]]


def grade(
    submitted: list[SubmittedFile], rules: Rules, folder: Path, policy: Policy, judging: Judging
) -> Results:
    """Judge what was handed in, write results and reports into a folder, return the results.

    A run that was killed goes on where it stopped. Raises NoIsolation, OtherRules, OSError.
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
    write_atomically(folder / "results.json", as_json(graded))
    reports.write(graded, folder)
    journal.finish()
    return graded


def _at_once(one: SubmittedFile, known: dict[tuple[str, str], Entry]) -> Entry | None:
    """Return the entry of what is not to be judged: it cannot be, or it has been."""
    if one.problem:
        return unreadable(one.problem)
    if not one.notebook:
        return unreadable("There is no notebook here.", status="missing")
    try:
        return known.get((one.notebook, fingerprint(one.content())))
    except OSError as error:
        return unreadable(f"It cannot be read: {error.strerror}.")
    except ValueError as error:
        return unreadable(str(error))
