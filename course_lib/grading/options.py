"""`course grade`: its options become rules, what is wrong with them one sentence."""

import contextlib
import os
import secrets
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from course_lib.checking.catalogue import UnknownExercise, load
from course_lib.files.atomic import write_atomically
from course_lib.files.errors import CommandError
from course_lib.grading.detect import best_level, problem, problems
from course_lib.grading.gradebooks import canvas, moodle
from course_lib.grading.gradebooks.template import FilledTemplate
from course_lib.grading.grades import Lateness
from course_lib.grading.isolation import CannotGrade, Level
from course_lib.grading.judge import Rules, exercises_of, plain
from course_lib.grading.pipeline import OTHER_EXERCISES, Judging, on_other_exercises
from course_lib.grading.pipeline import grade as grade_all
from course_lib.grading.schema import Results
from course_lib.grading.submissions import NotSubmissions, Unreadable, collect, parse_time
from course_lib.grading.workers import Journal, OtherRules, judged_here

LARGEST_SEED = 2**31 - 1

Gradebook = tuple[
    str, Callable[..., FilledTemplate], str
]  # its name, what fills it, and the template


def grade(options: Namespace) -> int:
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
    with _errors_as_a_sentence(folder):
        rules, lateness = _rules(options), _lateness(options)
        submitted, gradebooks = collect(options.submissions), _gradebooks(options)
        results = grade_all(submitted, rules, folder, lateness, _judging(options))
        for name, fill, template in gradebooks:
            filled = fill(results, template=template)
            write_atomically(folder / name, filled.text)
            _tell(
                f"{folder / name}:",
                *filled.sentences(),
            )
    _print_summary(results, folder)
    return 0


@contextlib.contextmanager
def _errors_as_a_sentence(folder: Path) -> Iterator[None]:
    try:
        yield
    except (CannotGrade, NotSubmissions, UnknownExercise, Unreadable) as error:
        raise CommandError(plain(str(error))) from None
    except OtherRules:
        raise CommandError(
            f"{folder} holds an unfinished run with other options: go on with those, or name "
            "another folder."
        ) from None
    except OSError as error:
        raise CommandError(
            f"{plain(str(error.filename or folder))}: {error.strerror}. What was graded is kept "
            f"in {folder}; the same command goes on."
        ) from None


def _rules(options: Namespace) -> Rules:
    unfinished = Journal(options.out).rules()
    if options.seed is not None and not 0 <= options.seed <= LARGEST_SEED:
        raise CommandError(f"a seed is a whole number from 0 to {LARGEST_SEED}.")
    if options.seconds < 1:
        raise CommandError("--seconds is to be 1 or more.")
    seed = options.seed
    if seed is None:
        seed = unfinished.seed if unfinished else secrets.randbelow(LARGEST_SEED + 1)
    for exercise_id in options.exercise:
        load(exercise_id)
    try:
        exercises = exercises_of(options.lesson)
    except LookupError as error:
        raise CommandError(f"{error.args[0]}.") from None
    points = dict(map(_points_of, options.points))
    chosen = list(dict.fromkeys(exercises + options.exercise))
    return Rules(_level(options), seed, chosen, points, options.seconds)


def _points_of(word: str) -> tuple[str, float]:
    exercise_id, _, number = word.rpartition("=")
    load(exercise_id)
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


def _lateness(options: Namespace) -> Lateness:
    if not 0 <= options.late_penalty <= 100:
        raise CommandError("--late-penalty is a percentage, from 0 to 100.")
    try:
        due = parse_time(options.due) if options.due else None
    except ValueError:
        raise CommandError(f'--due {options.due} is no time such as "2026-12-01 23:59".') from None
    return Lateness(due, options.late_penalty)


def _judging(options: Namespace) -> Judging:
    if options.scheduler:
        from course_lib.grading.cluster import judged_by_dask

        return partial(judged_by_dask, scheduler=options.scheduler)
    jobs = options.jobs or os.cpu_count() or 1
    return partial(judged_here, jobs=max(1, jobs))


def _gradebooks(options: Namespace) -> list[Gradebook]:
    """Read the gradebooks that are to be filled in, and try them, before anything is graded."""
    gradebooks: list[Gradebook] = []
    if options.canvas:
        if not options.assignment:
            raise CommandError("--canvas needs --assignment, the name of the column to fill in.")
        fill = partial(canvas.fill, assignment=options.assignment)
        gradebooks.append(("canvas.csv", fill, _read(options.canvas)))
    if options.moodle:
        gradebooks.append(("moodle.csv", moodle.fill, _read(options.moodle)))
    nothing: Results = {"isolation": "plain", "seed": 0, "submissions": []}
    for _, fill, template in gradebooks:
        try:
            fill(nothing, template=template)
        except ValueError as error:
            raise CommandError(str(error)) from None
    return gradebooks


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8: export it again, or save it as UTF-8.") from None


def _print_summary(results: Results, folder: Path) -> None:
    rows = results["submissions"]
    graded = [x for x in rows if x["status"] == "graded"]
    how = f"{results['isolation']}, seed {results['seed']}"
    _tell(f"{len(graded)} of {len(rows)} notebooks graded ({how}).")
    for row in rows:
        if row["status"] != "graded":
            _tell(f"{row['notebook'] or row['student']}: {row['message']}")
    for row in on_other_exercises(results):
        _tell(f"{row['notebook']}: {OTHER_EXERCISES} --lesson or --exercise chooses for all.")
    _tell(f"The class: {folder / 'class.html'}. Grades: {folder / 'grades.csv'}.")


def _tell(first: str, *more: str) -> None:
    """Print lines; of what a student wrote, a terminal gets printable characters alone."""
    print(plain(first), *(f"  {plain(line)}" for line in more), sep="\n")
