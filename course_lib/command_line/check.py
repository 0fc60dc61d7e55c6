"""`course check`: judge the answers of a notebook, each behind a process boundary."""

import contextlib
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.command_line.shared import load, printable, used
from course_lib.files.errors import CommandError
from course_lib.files.workspace import Workspace

if TYPE_CHECKING:
    from course_lib.answers.answer import Answer
    from course_lib.checking.notebook.answer_cells import Attempt
    from course_lib.checking.verdict import Verdict

NAME = "check"
WHAT = "judge the exercises of your own notebook: no other cell runs, and there is no sandbox"
EXAMPLE = "workspace/00_start_here.ipynb --exercise start/hello"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the notebook, and the one exercise of it that may be asked for."""
    parser.add_argument("notebook", metavar="NOTEBOOK", type=Path)
    parser.add_argument("--exercise", metavar="ID", help="judge this one alone")
    parser.add_argument("--all", action="store_true", help="show each panel in full")


def run(options: Namespace) -> int:
    """Print a panel for each answer, and record it; return 1 if one is wrong."""
    from course_lib.answers.process import ChildProcess
    from course_lib.checking.notebook.answer_cells import read, verdicts

    if options.notebook.is_dir():
        raise CommandError(f"{options.notebook} is a folder: name one notebook in it.")
    submission, folder = read(options.notebook), options.notebook.absolute().parent
    if options.exercise:
        load(options.exercise)
        if options.exercise not in submission.attempts:
            others = ", ".join(submission.attempts)
            raise CommandError(f"{options.notebook} has no {options.exercise}: it has {others}.")
        attempts = {options.exercise: submission.attempts[options.exercise]}
        submission = replace(submission, attempts=attempts)
    for remark in submission.remarks:
        print(printable(remark))
    workspace, judged = Workspace.find(folder), []
    print(used(workspace, folder))
    # an answer reads what its notebook could read: the files beside it, and the workspace
    with contextlib.chdir(folder), ChildProcess() as child:
        for verdict in verdicts(submission, child):
            attempt = submission.attempts[verdict.exercise]
            tell(verdict, attempt, child, workspace, options.all)
            judged.append(verdict)
    passed = sum(x.status == "passed" for x in judged)
    points, most = sum(x.points for x in judged), sum(x.max_points for x in judged)
    print(f"{passed} of {len(judged)} exercises passed, {points} of {most} points.")
    return int(any(x.status not in ("passed", "not attempted") for x in judged))


def tell(
    verdict: "Verdict",
    attempt: "Attempt",
    judged: "Answer",
    workspace: Workspace | None,
    everything: bool = False,
) -> None:
    """Print the panel of a verdict, then what there is to say of a pass; record it."""
    from course_lib.checking.notebook.as_graded import warning
    from course_lib.checking.notebook.check import record
    from course_lib.checking.telling import panel
    from course_lib.checking.trying.remarks import remark

    attempted = verdict.status != "not attempted"
    shown = panel.text(verdict, everything=everything, in_terminal=True)
    if not attempted:
        said = filter(None, (f"○ {verdict.exercise}: not attempted yet", panel.stays(verdict)))
        shown = "\n  ".join(said)
    print(printable(shown))
    if workspace:
        record(workspace, verdict, attempt.define, attempt)
    if verdict.status == "passed":
        for said in filter(None, (remark(attempt.exercise, judged), warning(attempt))):
            print(printable(said))
