"""Who is graded how, as the options of `course grade` say: deadlines, the roster, marks by hand."""

from argparse import Namespace
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from course_lib.files.errors import CommandError
from course_lib.grading.gradebooks.template import name_key
from course_lib.grading.marks import by_hand
from course_lib.grading.marks.by_hand import ByHand
from course_lib.grading.marks.exam_key import Key
from course_lib.grading.marks.grades import Policy
from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.options import unusual
from course_lib.grading.reports.shared.text import one_line, who
from course_lib.grading.submissions import lateness, roster
from course_lib.grading.submissions.files import SubmittedFile, some
from course_lib.grading.submissions.lateness import Lateness
from course_lib.grading.submissions.roster import Roster
from course_lib.grading.submissions.times import deadline

MARKS = "marks.csv"
Table = TypeVar("Table")


def policy(
    options: Namespace, earlier: Results | None, submitted: list[SubmittedFile], key: Key
) -> Policy:
    """Read deadlines, the roster, which may be a gradebook's, and what a person has marked.

    Raises CommandError where nothing says whether somebody is late.
    """
    people = options.roster or options.canvas or options.moodle
    everybody = table(people, roster.read) if people else key.roster
    rubric = table(options.rubric, by_hand.read_rubric) if options.rubric else []
    marks = table(path, by_hand.read_marks) if (path := _marks(options)) else []
    worksheet = table(options.moodle, roster.read) if options.moodle else Roster()
    kept = kept_rows(earlier, submitted, everybody) if options.keep_others else []
    students = [(x.student, x.number) for x in submitted]
    students += [(x["student"], x.get("number", "")) for x in kept]
    extensions = everybody
    if options.extensions:
        extensions = table(
            options.extensions, lambda text: roster.read(text).fitted(everybody, students)
        )
    when = _lateness(options, extensions, (everybody, worksheet))
    if unknown := when.unknown(submitted):
        raise CommandError(who_says_when(unknown))
    rules = unusual(options)
    return Policy(when, everybody, ByHand(rubric, marks), key, kept, options.missing, rules)


def who_says_when(unknown: list[SubmittedFile]) -> str:
    """Say of whom nothing says when they handed in, and where that is found."""
    names = some(list(dict.fromkeys(x.student for x in unknown)))
    platforms = {x.platform for x in unknown}
    column = "a column `handed in` of --extensions or --roster"
    if platforms == {"Canvas"}:
        return (
            f"Canvas says that {names} handed in late, and not when: SpeedGrader shows the time "
            f"beside the submission; write it into {column}."
        )
    moodle = "Moodle's worksheet says it (--moodle), or " if "Moodle" in platforms else ""
    return (
        f"nothing says when {names} handed in, since the dates in an archive are those of its "
        f"download: {moodle}{column}{'' if moodle else ' is to say it'}."
    )


def kept_rows(
    earlier: Results | None, submitted: list[SubmittedFile], everybody: Roster
) -> list[SubmissionResult]:
    """List the earlier rows of those who are not graded now.

    Raises CommandError where one of these has another name now: whose feedback and row would be
    whose?
    """
    if not earlier:
        raise CommandError("--keep-others needs --earlier, whose rows they are.")
    now = {name_key(x.student) for x in submitted}
    people = {everybody.find(x.student, x.number): x.student for x in submitted}
    kept = []
    for row in earlier["submissions"]:
        person = everybody.find(row["student"], row.get("number", ""))
        if name_key(row["student"]) in now:
            continue
        if person is None or person not in people:
            kept.append(row)
        elif row["notebook"]:
            raise CommandError(
                f"{people[person]} is {who(row)} of the earlier run: give the notebook the name "
                f"that it had there, {row['notebook']}."
            )
    return kept


def _marks(options: Namespace) -> Path | None:
    """Return the table of marks: that which is named, or that of the earlier results."""
    if options.marks or not options.earlier:
        return options.marks
    path = options.earlier if options.earlier.is_dir() else options.earlier.parent
    return path / MARKS if (path / MARKS).exists() else None


def _lateness(options: Namespace, extensions: Roster, records: tuple[Roster, ...]) -> Lateness:
    try:
        due = deadline(options.due) if options.due else None
    except ValueError:
        raise CommandError(f'--due {options.due} is no time such as "2026-12-01 23:59".') from None
    try:
        penalty = lateness.penalty(options.late_penalty)
    except ValueError as error:
        raise CommandError(f"--late-penalty {options.late_penalty}: {error}") from None
    if not 0 <= options.grace < 1e6:
        raise CommandError("--grace is a number of minutes, 0 or more.")
    return Lateness(due, penalty, timedelta(minutes=options.grace), extensions, records)


def table(path: Path, read: Callable[[str], Table]) -> Table:
    """Read the file that an option names. Raises CommandError where it is not as it should be."""
    try:
        return read(text_of(path))
    except ValueError as error:
        raise CommandError(f"{path}: {one_line(str(error))}") from None


def text_of(path: Path) -> str:
    """Return the text of the file that an option names. Raises CommandError."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8: export it again, or save it as UTF-8.") from None
