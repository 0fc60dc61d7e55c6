"""`course grade`: its options become rules, what is wrong with them one sentence."""

import contextlib
import os
import secrets
import shlex
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from course_lib.checking.catalogue import UnknownExercise, outline
from course_lib.files.atomic import write_atomically
from course_lib.files.errors import CommandError
from course_lib.grading.gradebooks import feedback_zip
from course_lib.grading.gradebooks.template import FilledTemplate, name_key
from course_lib.grading.judging.isolation import (
    AS_ROOT,
    CannotGrade,
    Level,
    best_level,
    is_root,
    problem,
    problems,
)
from course_lib.grading.judging.rules import SECONDS, Rules, exercises_of, versions
from course_lib.grading.judging.workers import ended_by_signals, judged_here
from course_lib.grading.marks import by_hand, exam_key
from course_lib.grading.marks.by_hand import ByHand
from course_lib.grading.marks.entries import plain
from course_lib.grading.marks.exam_key import Key
from course_lib.grading.marks.grades import Policy
from course_lib.grading.marks.schema import Option, Results, SubmissionResult
from course_lib.grading.pipeline import Judging, grade
from course_lib.grading.reports.shared.statistics import to_be_marked
from course_lib.grading.reports.shared.text import count, one_line, who
from course_lib.grading.submissions import lateness, roster
from course_lib.grading.submissions.files import (
    NotSubmissions,
    SubmittedFile,
    Unreadable,
    collect,
    some,
)
from course_lib.grading.submissions.journal import Journal, OtherRules
from course_lib.grading.submissions.lateness import Lateness
from course_lib.grading.submissions.roster import Roster
from course_lib.grading.submissions.times import deadline
from course_lib.grading.terminal import say, say_results, say_what_was_left_out

LARGEST_SEED = 2**31 - 1
# what decides grades, beside the notebooks and the seed: a run with --earlier goes on with these
RULES: dict[str, Any] = {
    "lesson": [], "exercise": [], "exam": None, "points": [], "due": None, "late_penalty": "0",
    "grace": 0.0, "extensions": None, "roster": None, "strict": False, "seconds": SECONDS,
    "missing": "empty", "rubric": None, "canvas": None, "assignment": None, "moodle": None,
    "scale": None,
}  # fmt: skip
FILES = ("exam", "extensions", "roster", "rubric", "canvas", "moodle")
MARKS = "marks.csv"
Table = TypeVar("Table")

Gradebook = tuple[
    str, Callable[..., FilledTemplate], str
]  # its name, what fills it, and the template


def run(options: Namespace) -> int:
    """Grade what was handed in; return 0 once every submission has its row."""
    folder = options.out
    if folder.resolve().is_relative_to(options.submissions.resolve()):
        raise CommandError(
            f"{folder} is inside the submissions, where it would pass for a student's: "
            "name another folder."
        )
    if (folder / "results.json").exists() and Journal(folder).rules() is None:
        raise CommandError(
            f"{folder} holds results already: name another folder, or move these away."
        )
    with _errors_as_a_sentence(folder), ended_by_signals():
        earlier = _earlier(options)
        _as_earlier(options, earlier)
        key = _table(options.exam, exam_key.read) if options.exam else Key()
        rules, (gradebooks, worth) = _rules(options, earlier, key), _gradebooks(options)
        left_out: list[str] = []
        submitted = collect(options.submissions, left_out.append)
        policy = replace(_policy(options, earlier, submitted, key), gradebooks=worth)
        if is_root():
            say(f"Note: {AS_ROOT}")
        say_what_was_left_out(left_out)
        if changed := Journal(folder).changed(rules):
            say(f"{some(changed)} changed since this run was interrupted: all is judged anew.")
        results = grade(submitted, rules, folder, policy, _judging(options))
        if not (folder / MARKS).exists():
            write_atomically(folder / MARKS, policy.by_hand.table(results))
        if gradebooks and (waiting := to_be_marked(results)):
            names = " and ".join(name for name, *_ in gradebooks)
            say(f"{names}: not written while {count(waiting, 'answer')} are to be marked by hand.")
            gradebooks = []
        for name, content in feedback_zip.archives(results).items():
            write_atomically(folder / name, content)
        for name, fill, template in gradebooks:
            filled = fill(results, template=template)
            write_atomically(folder / name, filled.text)
            say(f"{folder / name}:", *filled.sentences())
        if earlier:
            from course_lib.grading.submissions import regrade

            changes = regrade.changes(earlier, results)
            write_atomically(folder / "changes.html", regrade.page(changes, earlier, results))
            say(f"{folder / 'changes.html'}:", *regrade.sentences(changes))
        # until here, the same command goes on
        Journal(folder).finish()
    say_results(results, folder, policy, submitted)
    return 0


@contextlib.contextmanager
def _errors_as_a_sentence(folder: Path) -> Iterator[None]:
    try:
        yield
    except (CannotGrade, NotSubmissions, UnknownExercise, Unreadable) as error:
        raise CommandError(plain(str(error))) from None
    except OtherRules as error:
        raise CommandError(
            f"{folder} holds an unfinished run with other options ({error}): go on with those, or "
            "name another folder."
        ) from None
    except OSError as error:
        raise CommandError(
            f"{plain(str(error.filename or folder))}: {error.strerror}. What was graded is kept "
            f"in {folder}; the same command goes on."
        ) from None


def _earlier(options: Namespace) -> Results | None:
    if not options.earlier:
        return None
    from course_lib.grading.submissions import regrade

    try:
        return regrade.read(options.earlier)
    except OSError as error:
        raise CommandError(f"{options.earlier} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise CommandError(str(error)) from None


def _as_earlier(options: Namespace, earlier: Results | None) -> None:
    """Fill in rules that were not given: the earlier run's, which is said, or the usual ones.

    Raises CommandError where rows are to be kept, and nobody knows by which rules they are.
    """
    before = earlier.get("options") if earlier else {}
    if before is None and options.keep_others:
        raise CommandError(
            f"{options.earlier} was written by an earlier version, and does not say by which rules "
            "its rows were graded: grade the whole class again, without --keep-others."
        )
    open_rules = [name for name in RULES if not _is_given(getattr(options, name))]
    taken = {name: before[name] for name in open_rules if before and name in before}
    for name in open_rules:
        value = taken.get(name, RULES[name])
        setattr(options, name, Path(str(value)) if name in FILES and value else value)
    if taken:
        words = [word for name, value in taken.items() for word in _words(name, value)]
        say(f"As in the earlier run: {shlex.join(words)}.")


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value != []


def _words(name: str, value: Option) -> list[str]:
    """Write an option as it is given."""
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    values = value if isinstance(value, list) else [value]
    return [word for x in values for word in (option, f"{x:g}" if isinstance(x, float) else str(x))]


def _given_rules(options: Namespace) -> dict[str, Option]:
    """Return the rules that are not the usual ones, for results.json."""
    values = {name: getattr(options, name) for name in RULES}
    return {
        name: str(value) if name in FILES else value
        for name, value in values.items()
        if value != RULES[name]
    }


def _rules(options: Namespace, earlier: Results | None, key: Key) -> Rules:
    unfinished = Journal(options.out).rules()
    if options.seed is not None and not 0 <= options.seed <= LARGEST_SEED:
        raise CommandError(f"a seed is a whole number from 0 to {LARGEST_SEED}.")
    if options.seconds < 1:
        raise CommandError("--seconds is to be 1 or more.")
    seed = options.seed
    if seed is None and unfinished:
        seed = unfinished.seed
    elif seed is None:
        seed = earlier["seed"] if earlier else secrets.randbelow(LARGEST_SEED + 1)
    for exercise_id in options.exercise:
        outline(exercise_id)
    try:
        exercises = exercises_of(options.lesson)
    except LookupError as error:
        raise CommandError(f"{error.args[0]}.") from None
    points = dict(map(_points_of, options.points))
    chosen = list(dict.fromkeys([*exercises, *options.exercise, *key.exercises]))
    return Rules(
        _level(options), seed, chosen, points, options.seconds, strict=options.strict,
        versions=versions(),
    )  # fmt: skip


def _points_of(word: str) -> tuple[str, float]:
    exercise_id, _, number = word.rpartition("=")
    outline(exercise_id)
    try:
        points = float(number)
    except ValueError:
        points = -1.0
    if not 0 <= points < 1e6:
        raise CommandError(f"--points {word} is not understood: it is ID=N, as in masks/causal=10.")
    return exercise_id, points


def _level(options: Namespace) -> Level:
    level: Level = options.isolation or best_level()
    if level == "plain" and not options.trust:
        reasons = problems()
        raise CommandError(
            f"plain processes keep no student's code from your files{reasons and f' ({reasons})'}: "
            "--trust grades in them all the same."
        )
    if reason := problem(level):
        raise CommandError(f"{reason}.")
    return level


def _policy(
    options: Namespace, earlier: Results | None, submitted: list[SubmittedFile], key: Key
) -> Policy:
    """Read deadlines, the roster, which may be a gradebook's, and what a person has marked.

    Raises CommandError where nothing says whether somebody is late.
    """
    people = options.roster or options.canvas or options.moodle
    everybody = _table(people, roster.read) if people else key.roster
    rubric = _table(options.rubric, by_hand.read_rubric) if options.rubric else []
    marks = _table(path, by_hand.read_marks) if (path := _marks(options)) else []
    worksheet = _table(options.moodle, roster.read) if options.moodle else Roster()
    kept = _kept(earlier, submitted, everybody) if options.keep_others else []
    students = [(x.student, x.number) for x in submitted]
    students += [(x["student"], x.get("number", "")) for x in kept]
    extensions = everybody
    if options.extensions:
        extensions = _table(
            options.extensions, lambda text: roster.read(text).fitted(everybody, students)
        )
    when = _lateness(options, extensions, (everybody, worksheet))
    if unknown := when.unknown(submitted):
        raise CommandError(_who_says_when(unknown))
    rules = _given_rules(options)
    return Policy(when, everybody, ByHand(rubric, marks), key, kept, options.missing, rules)


def _who_says_when(unknown: list[SubmittedFile]) -> str:
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


def _kept(
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


def _table(path: Path, read: Callable[[str], Table]) -> Table:
    try:
        return read(_read(path))
    except ValueError as error:
        raise CommandError(f"{path}: {one_line(str(error))}") from None


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


def _judging(options: Namespace) -> Judging:
    if options.scheduler:
        from course_lib.grading.judging.cluster import judged_by_dask

        return partial(judged_by_dask, scheduler=options.scheduler)
    jobs = options.jobs or os.cpu_count() or 1
    return partial(judged_here, jobs=max(1, jobs))


def _gradebooks(options: Namespace) -> tuple[list[Gradebook], dict[str, float]]:
    """Read the gradebooks that are to be filled in, and how many points each has.

    They are tried before anything is graded.
    """
    if options.scale is not None and not 0 < options.scale < 1e6:
        raise CommandError("--scale is a number of points, more than 0.")
    gradebooks: list[Gradebook] = []
    if options.canvas:
        if not options.assignment:
            raise CommandError("--canvas needs --assignment, the name of the column to fill in.")
        from course_lib.grading.gradebooks import canvas

        fill = partial(canvas.fill, assignment=options.assignment, scale=options.scale)
        gradebooks.append(("canvas.csv", fill, _read(options.canvas)))
    if options.moodle:
        from course_lib.grading.gradebooks import moodle

        gradebooks.append(
            ("moodle.csv", partial(moodle.fill, scale=options.scale), _read(options.moodle))
        )
    nothing: Results = {"isolation": "plain", "seed": 0, "submissions": []}
    worth = {}
    for _, fill, template in gradebooks:
        try:
            filled = fill(nothing, template=template)
        except ValueError as error:
            raise CommandError(str(error)) from None
        worth[filled.gradebook] = filled.points
    return gradebooks, worth


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8: export it again, or save it as UTF-8.") from None
