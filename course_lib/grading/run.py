"""`course grade`: its options become rules, what is wrong with them one sentence."""

import contextlib
import os
import secrets
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from course_lib.checking.catalogue import UnknownExercise, outline
from course_lib.files.atomic import write_atomically
from course_lib.files.errors import CommandError
from course_lib.grading.gradebooks import feedback_zip
from course_lib.grading.gradebooks.template import FilledTemplate
from course_lib.grading.judging.isolation import (
    AS_ROOT,
    CannotGrade,
    Level,
    best_level,
    is_root,
    problem,
    problems,
)
from course_lib.grading.judging.rules import Rules, exercises_of, versions
from course_lib.grading.judging.workers import ended_by_signals, judged_here
from course_lib.grading.marks import exam_key
from course_lib.grading.marks.entries import plain
from course_lib.grading.marks.exam_key import Key
from course_lib.grading.marks.schema import Results
from course_lib.grading.options import completed
from course_lib.grading.pipeline import Judging, grade
from course_lib.grading.policies import MARKS, policy, table, text_of
from course_lib.grading.reports.shared.statistics import to_be_marked
from course_lib.grading.reports.shared.text import count
from course_lib.grading.submissions.files import NotSubmissions, Unreadable, collect, some
from course_lib.grading.submissions.journal import Journal, OtherRules
from course_lib.grading.terminal import say, say_results, say_what_was_left_out

LARGEST_SEED = 2**31 - 1
# its name, what fills it, and the template
Gradebook = tuple[str, Callable[..., FilledTemplate], str]


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
        options = _as_earlier(options, earlier)
        key = table(options.exam, exam_key.read) if options.exam else Key()
        rules, (gradebooks, worth) = _rules(options, earlier, key), _gradebooks(options)
        left_out: list[str] = []
        submitted = collect(options.submissions, left_out.append)
        graded_by = replace(policy(options, earlier, submitted, key), gradebooks=worth)
        if is_root():
            say(f"Note: {AS_ROOT}")
        say_what_was_left_out(left_out)
        if changed := Journal(folder).changed(rules):
            say(f"{some(changed)} changed since this run was interrupted: all is judged anew.")
        results = grade(submitted, rules, folder, graded_by, _judging(options))
        if not (folder / MARKS).exists():
            write_atomically(folder / MARKS, graded_by.by_hand.table(results))
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
    say_results(results, folder, graded_by, submitted)
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


def _as_earlier(options: Namespace, earlier: Results | None) -> Namespace:
    """Fill in rules that were not given: the earlier run's, which is said, or the usual ones.

    Raises CommandError where rows are to be kept, and nobody knows by which rules they are.
    """
    before = earlier.get("options") if earlier else {}
    if before is None and options.keep_others:
        raise CommandError(
            f"{options.earlier} was written by an earlier version, and does not say by which rules "
            "its rows were graded: grade the whole class again, without --keep-others."
        )
    options, taken = completed(options, before or {})
    if taken:
        say(f"As in the earlier run: {taken}.")
    return options


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
        gradebooks.append(("canvas.csv", fill, text_of(options.canvas)))
    if options.moodle:
        from course_lib.grading.gradebooks import moodle

        gradebooks.append(
            ("moodle.csv", partial(moodle.fill, scale=options.scale), text_of(options.moodle))
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
