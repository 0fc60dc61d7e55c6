"""`course grade`: its options become rules, what is wrong with them one sentence."""

import contextlib
import os
import secrets
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.commands import Refused
from course_lib.exercises.catalogue import UnknownExercise, load
from course_lib.files import write_atomically
from course_lib.grading.grade import Judging
from course_lib.grading.grade import grade as grade_all
from course_lib.grading.isolation import LEVELS, Level, NoIsolation
from course_lib.grading.judge import Rules, exercises_of
from course_lib.grading.probe import best_level, problem
from course_lib.grading.reports import canvas, moodle
from course_lib.grading.results import Lateness
from course_lib.grading.run import Kept, OtherRules, judged_here
from course_lib.grading.submissions import NotSubmissions, collect

LARGEST_SEED = 2**31 - 1


def grade(options: Namespace) -> int:
    """Grade what was handed in; return 0 once every submission has its row."""
    folder = options.out
    if (folder / "results.json").exists() and Kept(folder).rules() is None:
        raise Refused(f"{folder} holds results already: name another folder, or move these away.")
    with _one_sentence(folder):
        rules, lateness = _rules(options), _lateness(options)
        submitted, gradebooks = collect(options.submissions), _gradebooks(options)
        found = grade_all(submitted, rules, folder, lateness, _judging(options))
        for name, fill in gradebooks:
            filled = fill(found)
            write_atomically(folder / name, filled.text)
            for sentence in filled.sentences():
                print(sentence)
    _report(found, folder)
    return 0


@contextlib.contextmanager
def _one_sentence(folder: Path) -> Iterator[None]:
    try:
        yield
    except (NotSubmissions, NoIsolation, UnknownExercise) as error:
        raise Refused(str(error)) from None
    except OtherRules:
        raise Refused(
            f"{folder} holds an unfinished run with other options: go on with those, or name "
            "another folder."
        ) from None
    except OSError as error:
        raise Refused(
            f"{error.filename or folder}: {error.strerror}. What was graded is kept in {folder}; "
            "the same command goes on."
        ) from None


def _rules(options: Namespace) -> Rules:
    before = Kept(options.out).rules()
    if options.seed is not None and not 0 <= options.seed <= LARGEST_SEED:
        raise Refused(f"a seed is a whole number from 0 to {LARGEST_SEED}.")
    if options.seconds < 1:
        raise Refused("--seconds is to be 1 or more.")
    seed = options.seed
    if seed is None:
        seed = before.seed if before else secrets.randbelow(LARGEST_SEED + 1)
    for id in options.exercise:
        load(id)
    try:
        exercises = exercises_of(options.lesson)
    except LookupError as error:
        raise Refused(f"{error.args[0]}.") from None
    points = dict(map(_points, options.points))
    chosen = list(dict.fromkeys(exercises + options.exercise))
    return Rules(_level(options), seed, chosen, points, options.seconds)


def _points(word: str) -> tuple[str, float]:
    id, _, number = word.rpartition("=")
    load(id)
    try:
        points = float(number)
    except ValueError:
        points = -1.0
    if not 0 <= points < 1e6:
        raise Refused(f"--points {word} is not understood: it is ID=N, as in masks/causal=10.")
    return id, points


def _level(options: Namespace) -> Level:
    level: Level = options.isolation or ("plain" if options.trust else best_level())
    if level == "plain" and not options.trust:
        reasons = "; ".join(filter(None, map(problem, LEVELS)))
        raise Refused(
            f"nothing here keeps students' code from your files ({reasons or 'plain was asked'}). "
            "--trust grades all the same, in plain processes."
        )
    if found := problem(level):
        raise Refused(f"{found}.")
    return level


def _lateness(options: Namespace) -> Lateness:
    if not 0 <= options.late_penalty <= 100:
        raise Refused("--late-penalty is a percentage, from 0 to 100.")
    try:
        due = options.due and datetime.fromisoformat(options.due)
    except ValueError:
        raise Refused(f'--due {options.due} is no time such as "2026-12-01 23:59".') from None
    return Lateness(due or None, options.late_penalty)


def _judging(options: Namespace) -> Judging:
    if options.scheduler:
        from course_lib.grading.cluster import judged_by_dask

        return partial(judged_by_dask, scheduler=options.scheduler)
    jobs = options.jobs or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    return partial(judged_here, jobs=max(1, jobs))


def _gradebooks(options: Namespace) -> list[tuple[str, Callable[[dict[str, Any]], Any]]]:
    """Read the gradebooks that are to be filled in, before anything is graded."""
    found = []
    if options.canvas:
        if not options.assignment:
            raise Refused("--canvas needs --assignment, the name of the column to fill in.")
        text = options.canvas.read_text("utf8")
        found.append(
            ("canvas.csv", partial(canvas.fill, template=text, assignment=options.assignment))
        )
    if options.moodle:
        text = options.moodle.read_text("utf8")
        found.append(("moodle.csv", partial(moodle.fill, template=text)))
    return found


def _report(found: dict[str, Any], folder: Path) -> None:
    rows = found["submissions"]
    graded = [x for x in rows if x["status"] == "graded"]
    print(
        f"{len(graded)} of {len(rows)} notebooks graded ({found['isolation']}, seed {found['seed']})."
    )
    for row in rows:
        if row["status"] != "graded":
            print(f"{row['notebook'] or row['student']}: {row['message']}")
    print(f"The class: {folder / 'class.html'}. Grades: {folder / 'grades.csv'}.")
