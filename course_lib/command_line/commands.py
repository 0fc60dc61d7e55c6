"""What each command of `course` does; it takes the parsed options and returns an exit status.

What imports torch is imported by the command that needs it, so that the others are quick.
"""

import contextlib
import itertools
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_lib.files.errors import Refused
from course_lib.files.paths import ROOT
from course_lib.files.workspace import Workspace

WORKSPACE = ROOT / "workspace"
LARGEST_ERROR = 1e-10  # of a component against its oracle, in float64


def learn(options: Namespace) -> int:
    """Fetch what is missing, bring the workspace up to date, and become JupyterLab."""
    from course_lib.command_line import learn

    notebooks, folder = ROOT / "notebooks", options.workspace.absolute()
    if options.port is not None and (problem := learn.port_problem(options.port)):
        print(f"course: {problem}", file=sys.stderr)
        return 1
    if not notebooks.is_dir():
        raise Refused(f"there is no folder {notebooks}: install the course from its repository.")
    learn.fetch_missing(notebooks)
    try:
        messages = learn.hand_out(Workspace.make(folder), notebooks)
    except OSError as error:
        raise Refused(f"{folder} cannot be written to: {error.strerror}.") from error
    print(*messages, f"Your notebooks are in {folder}.", sep="\n")
    return learn.become(learn.lab_command(folder, options.port, options.further))


def check(options: Namespace) -> int:
    """Judge the answers of a notebook, each behind a process boundary, and record them."""
    from course_lib.answers.process import ChildProcess
    from course_lib.checking import panel
    from course_lib.checking.notebook import record
    from course_lib.checking.notebook_answers import read, verdicts

    submission, folder = read(options.notebook), options.notebook.absolute().parent
    if options.exercise:
        _load(options.exercise)
        if options.exercise not in submission.attempts:
            others = ", ".join(submission.attempts)
            raise Refused(f"{options.notebook} has no {options.exercise}: it has {others}.")
        attempts = {options.exercise: submission.attempts[options.exercise]}
        submission = replace(submission, attempts=attempts)
    for remark in submission.remarks:
        print(remark)
    workspace, found = Workspace.find(folder), []
    # an answer finds what it finds in its notebook: the files beside it, and the workspace
    with contextlib.chdir(folder), ChildProcess() as child:
        for verdict in verdicts(submission, child):
            attempted = verdict.status != "not attempted"
            print(panel.text(verdict) if attempted else f"○ {verdict.exercise}: not attempted yet")
            if workspace:
                record(workspace, verdict, submission.attempts[verdict.exercise].define)
            found.append(verdict)
    passed = sum(x.status == "passed" for x in found)
    points, most = sum(x.points for x in found), sum(x.max_points for x in found)
    print(f"{passed} of {len(found)} exercises passed, {points} of {most} points.")
    return int(any(x.status not in ("passed", "not attempted") for x in found))


def progress(options: Namespace) -> int:
    """Show for each lesson what is recorded in the workspace."""
    from course_lib.checking.catalogue import ids, load
    from course_lib.checking.verdict import max_points
    from course_lib.files.course_map import lessons

    workspace = _workspace()
    records = {id: workspace.record(id) for id in ids()}
    titles = {lesson.number: lesson.title for lesson in lessons()}
    rows = []
    for number, own in itertools.groupby(records, key=lambda id: load(id).lesson):
        own = list(own)
        attempted = sum(records[id].attempts > 0 for id in own)
        passed = sum(records[id].passed for id in own)
        points = sum(records[id].points for id in own)
        most = sum(max_points(load(id)) for id in own)
        lesson = f"{number} {titles.get(number, '')}"
        rows.append((lesson, len(own), attempted, passed, f"{points} of {most}"))
    _show(("lesson", "exercises", "attempted", "passed", "points"), rows)
    left = [id for id, record in records.items() if not record.passed]
    print(f"Next: {left[0]}, in lesson {load(left[0]).lesson}." if left else "All have passed.")
    return 0


def list_exercises(options: Namespace) -> int:
    """Show all exercises."""
    from course_lib.checking.catalogue import ids, load
    from course_lib.checking.verdict import max_points

    rows = [
        (x.id, x.lesson, x.title, x.minutes, x.difficulty, max_points(x)) for x in map(load, ids())
    ]
    _show(("exercise", "lesson", "title", "minutes", "difficulty", "points"), rows)
    return 0


def hint(options: Namespace) -> int:
    """Show a hint, and record it in the workspace."""
    from course_lib.exercises import hint

    _load(options.id)
    workspace = _find_workspace()
    with contextlib.chdir(workspace.folder if workspace else Path.cwd()):
        hint(options.id, options.number)
    return 0


def solution(options: Namespace) -> int:
    """Print the reference."""
    from course_lib.exercises import solution

    _load(options.id)
    solution(options.id)
    return 0


def reset(options: Namespace) -> int:
    """Put a stub back into a notebook of the workspace."""
    from course_lib.checking.reset import NoPlace, reset

    _load(options.id)
    workspace = _workspace()
    try:
        print(reset(workspace, options.id, options.notebook and options.notebook.name))
    except NoPlace as error:
        raise Refused(str(error)) from None
    except OSError as error:
        reason = f"{workspace.folder} cannot be written to: {error.strerror}"
        raise Refused(f"{reason}; the notebook is as it was.") from error
    return 0


def fetch(options: Namespace) -> int:
    """Bring data into the cache, or remove it."""
    from course_lib.data import store

    names, folder = options.items or None, store.cache_folder()
    try:
        if options.remove:
            print(f"{store.remove(names) / 1e6:.1f} MB freed in {folder}.")
        else:
            print(f"{store.fetch(names) / 1e6:.1f} MB fetched into {folder}.")
    except ValueError as error:
        raise Refused(str(error)) from None
    except store.FetchError as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def doctor(options: Namespace) -> int:
    """Print what the checks of this machine find."""
    from course_lib.command_line.doctor import findings

    workspace, broken = _find_workspace(), False
    for level, sentence in findings(workspace.folder if workspace else WORKSPACE):
        print(f"{level:<7}{sentence}", flush=True)
        broken = broken or level == "broken"
    return int(broken)


def verify(options: Namespace) -> int:
    """Print the components' errors, and on how many answers the checks were tried."""
    from tqdm import tqdm

    from course_lib.checking.catalogue import ids, load
    from course_lib.checking.proof.laws import prove
    from course_lib.verify import as_markdown, verify

    rows = verify()
    proofs = {id: prove(load(id)) for id in tqdm(ids(), unit="exercise")}
    violations = [f"{id}: {x}" for id, proof in proofs.items() for x in proof.violations]
    counts = [(x.mistakes, x.alternatives, x.mutants, x.edits) for x in proofs.values()]
    totals = (len(proofs), *map(sum, zip(*counts, strict=True)), len(violations))
    kinds = ("exercises", "known mistakes", "alternatives", "mutants", "edits", "violations")
    if options.markdown:
        print(as_markdown(rows))
        for line in (kinds, ["-:"] * len(kinds), totals):
            print(f"| {' | '.join(map(str, line))} |")
    else:
        errors = [
            (x.component, x.oracle, f"{x.error:.0e}", f"{x.gradient_error:.0e}") for x in rows
        ]
        _show(("component", "oracle", "error", "gradient error"), errors)
        _show(kinds, [totals])
    for violation in violations:
        print(violation, file=sys.stderr)
    # each by itself: the maximum of a number and NaN may be the number
    exact = all(x.error < LARGEST_ERROR and x.gradient_error < LARGEST_ERROR for x in rows)
    return int(bool(violations) or not exact)


def grade(options: Namespace) -> int:
    """Judge a folder or zip file of strangers' notebooks, and write results and reports."""
    from course_lib.grading.options import grade

    return grade(options)


def export(options: Namespace) -> int:
    """Write a lesson's exercises as another tool takes them."""
    from course_lib.grading.exports import export

    files = export(options.tool, options.lesson, options.folder)
    print(*files, f"{options.folder / 'README.md'} says how to go on.", sep="\n")
    return 0


def _load(id: str) -> Any:
    """Return an exercise, or refuse an id that none has."""
    from course_lib.checking.catalogue import UnknownExercise, load

    try:
        return load(id)
    except UnknownExercise as error:
        raise Refused(str(error)) from None


def _find_workspace() -> Workspace | None:
    return Workspace.find() or Workspace.find(WORKSPACE)


def _workspace() -> Workspace:
    if workspace := _find_workspace():
        return workspace
    raise Refused("there is no workspace here: run `course learn` first, or go to its folder.")


def _show(names: tuple[str, ...], rows: list[tuple]) -> None:
    """Print a table, its numbers to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for name, value in zip(names, rows[0], strict=True):
        justify = "right" if isinstance(value, int) else "left"
        table.add_column(name, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    # a terminal's width, or that of a wide one where this goes into a file
    width = None if sys.stdout.isatty() else 120
    Console(width=width, markup=False, highlight=False).print(table)
