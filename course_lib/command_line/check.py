"""`course check`: judge the answers of a notebook, each behind a process boundary."""

import contextlib
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.command_line.shared import load, printable, used
from course_lib.files import ipynb
from course_lib.files.course_map import exercises, pages
from course_lib.files.errors import CommandError
from course_lib.files.paths import ROOT
from course_lib.files.releases import INSTALLATION, without
from course_lib.files.workspace import Workspace

if TYPE_CHECKING:
    from course_lib.answers.answer import Answer
    from course_lib.checking.notebook.answer_cells import Attempt
    from course_lib.checking.verdict import Verdict
    from course_lib.files.course_map import Outline

NAME = "check"
WHAT = "judge the exercises of your own notebook: no other cell runs, and there is no sandbox"
EXAMPLE = "workspace/00_start_here.ipynb --exercise start/hello"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the notebook, and the one exercise of it that may be asked for."""
    parser.add_argument("notebook", metavar="NOTEBOOK", type=Path)
    parser.add_argument("--exercise", metavar="ID", help="judge this one alone")
    parser.add_argument(
        "--due", metavar="LESSON",
        help="before you hand it in: is this the page of LESSON, and which answers are missing?",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="show each panel in full")


def run(options: Namespace) -> int:
    """Print a panel for each answer, and record it; return 1 if one is wrong."""
    if options.notebook.is_dir():
        raise CommandError(f"{options.notebook} is a folder: name one notebook in it.")
    if options.due:
        return _due(options.notebook, options.due)
    folder = options.notebook.absolute().parent
    workspace = Workspace.find(folder)
    if not options.exercise and (untouched := _untouched(options.notebook, workspace)):
        print(used(workspace, folder))
        for exercise in untouched:
            print(f"○ {exercise.id}: not attempted yet")
        most = sum(x.points for x in untouched)
        print(f"0 of {len(untouched)} exercises passed, 0 of {most} points.")
        return 0
    from course_lib.answers.process import ChildProcess
    from course_lib.checking.notebook.submission import read, verdicts

    submission = read(options.notebook)
    if options.exercise:
        load(options.exercise)
        if options.exercise not in submission.attempts:
            others = ", ".join(submission.attempts)
            raise CommandError(f"{options.notebook} has no {options.exercise}: it has {others}.")
        attempts = {options.exercise: submission.attempts[options.exercise]}
        submission = replace(submission, attempts=attempts)
    for remark in submission.remarks:
        print(printable(remark))
    judged = []
    print(used(workspace, folder))
    # an answer reads what its notebook could read: the files beside it, and the workspace
    with contextlib.chdir(folder), ChildProcess() as child:
        for verdict in verdicts(submission, child):
            attempt = submission.attempts[verdict.exercise]
            tell(verdict, attempt, child, workspace, options.all, of_several=True)
            judged.append(verdict)
    passed = sum(x.status == "passed" for x in judged)
    points, most = sum(x.points for x in judged), sum(x.max_points for x in judged)
    print(f"{passed} of {len(judged)} exercises passed, {points} of {most} points.")
    return int(any(x.status not in ("passed", "not attempted") for x in judged))


def _due(path: Path, lesson: str) -> int:
    """Say what a grader would find of a lesson in a notebook; return 1 if anything is missing."""
    from course_lib.answers.source import Source
    from course_lib.checking.catalogue import outline
    from course_lib.checking.notebook.submission import another_page, find_answers
    from course_lib.grading.judging.rules import exercises_of

    try:
        asked = [outline(x) for x in exercises_of([lesson])]
    except LookupError as error:
        raise CommandError(f"{error.args[0]}.") from None
    notebook = ipynb.read(path)
    if said := another_page(notebook, asked):
        raise CommandError(said)
    submission, missing = find_answers(notebook, str(path), asked, alone=True), []
    for attempt in submission.attempts.values():
        exercise_id = attempt.exercise.id
        own = [Source(ipynb.code(x)) for x in notebook["cells"] if ipynb.exercise(x) == exercise_id]
        if not attempt.source or any(map(load(exercise_id).is_untouched, own)):
            missing.append(attempt)
            print(printable(f"○ {exercise_id}: {attempt.problem or 'not written yet'}"))
    there = len(asked) - len(missing)
    print(f"{path} is a page of {lesson}; {there} of {len(asked)} answers are there.")
    return int(bool(missing))


def _untouched(path: Path, workspace: Workspace | None) -> "list[Outline]":
    """List the exercises of a notebook that is as it was handed out, if none has ever passed.

    None is loaded for it, which takes seconds.
    """
    notebook = ipynb.read(path)
    page = next((x for x in pages() if x.number == ipynb.lesson(notebook) and x.written), None)
    release = page and ROOT / "notebooks" / page.notebook
    if not release or not release.is_file():
        return []
    both = notebook, ipynb.read(release)
    for x in both:
        without(x, INSTALLATION)  # it is another one in a workspace
    own, given = (
        [(ipynb.exercise(cell), ipynb.code(cell).rstrip()) for cell in x["cells"]] for x in both
    )
    found, all_there = ([exercise for exercise, _ in x if exercise] for x in (own, given))
    passed = workspace and any(workspace.record(x).passed for x in found)
    if passed or found != all_there or not {*own} <= {*given}:
        return []
    known = {x.id: x for x in exercises()}
    return [known[x] for x in found if x in known]


def tell(
    verdict: "Verdict",
    attempt: "Attempt",
    judged: "Answer",
    workspace: Workspace | None,
    everything: bool = False,
    of_several: bool = False,
) -> None:
    """Print the panel of a verdict, then what there is to say of a pass; record it."""
    from course_lib.checking.explain import panel
    from course_lib.checking.notebook.answer_cells import warning
    from course_lib.checking.notebook.check import record
    from course_lib.checking.verdict import remark

    attempted = verdict.status != "not attempted"
    shown = panel.text(verdict, everything=everything, of_several=of_several, in_terminal=True)
    if not attempted:
        said = filter(None, (f"○ {verdict.exercise}: not attempted yet", panel.stays(verdict)))
        shown = "\n  ".join(said)
    print(printable(shown))
    if workspace:
        record(workspace, verdict, attempt.define, attempt)
    if verdict.status == "passed":
        for said in filter(None, (remark(load(verdict.exercise), judged), warning(attempt))):
            print(printable(said))
