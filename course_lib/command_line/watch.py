"""`course watch`: judge what has changed in a notebook each time that it is saved."""

import contextlib
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.command_line import shared
from course_lib.command_line.check import tell
from course_lib.files import ipynb
from course_lib.files.errors import CommandError, NotANotebook
from course_lib.files.workspace import Workspace

if TYPE_CHECKING:
    from course_lib.checking.notebook.answer_cells import Attempt, Holder

NAME = "watch"
WHAT = "judge what you have changed each time that you save a notebook, until Ctrl-C"
EXAMPLE = "workspace/02_attention.ipynb"

PAUSE = 0.2  # seconds between two looks at the files


def add_arguments(parser: ArgumentParser) -> None:
    """Declare what to watch: a notebook, a folder, or all notebooks of the workspace."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "path",
        metavar="NOTEBOOK or FOLDER",
        type=Path,
        nargs="?",
        help="all notebooks of the workspace by default",
    )
    shared.takes_workspace(which)


def run(options: Namespace) -> int:
    """Show the verdict on what each save has changed; return 0 on Ctrl-C."""
    path = options.path or shared.workspace(options.workspace).folder
    if not path.exists():
        raise CommandError(f"there is no file or folder {path}.")
    if path.is_file() and path.suffix != ".ipynb":
        raise CommandError(f"{path} is no notebook: name one, or a folder of them.")
    with contextlib.suppress(KeyboardInterrupt):
        watch(path)
    print()
    return 0


def watch(path: Path) -> None:
    """Judge what changes in a notebook, or in those of a folder, without end."""
    from course_lib.answers.process import ChildProcess
    from course_lib.checking.catalogue import ids, load

    last = {file: _read(file) for file in notebooks(path)}
    saved = saves(path)
    folder = path if path.is_dir() else path.absolute().parent
    print(shared.used(Workspace.find(folder), folder))
    print(f"Watching {path}: what you change is judged when you save it. Ctrl-C ends this.")
    with ChildProcess() as child:
        # the seconds that a first verdict would wait for
        child.describe()
        for exercise_id in ids():
            load(exercise_id)
        for file in saved:
            old, new = last.get(file), _read(file)
            if isinstance(new, str):
                print(new)
                continue
            last[file] = new
            with contextlib.chdir(file.absolute().parent):
                show(file, old if isinstance(old, dict) else None, new, child)


def _read(file: Path) -> dict | str:
    """Return a notebook, or a sentence that says why it is none."""
    try:
        return ipynb.read(file)
    except NotANotebook as error:
        return str(error)


def show(file: Path, old: dict | None, new: dict, child: "Holder") -> None:
    """Clear the screen and show the verdicts on the answers that a save has changed, if any."""
    from rich.console import Console

    from course_lib.checking.notebook.progress import standing
    from course_lib.checking.notebook.submission import find_answers, verdicts

    try:
        submission = find_answers(new, file.name)
    except NotANotebook as error:
        print(error)
        return
    before = None
    with contextlib.suppress(NotANotebook):  # one that had no exercise yet
        before = find_answers(old, file.name) if old else None
    was = before.attempts if before else {}
    changed = {
        exercise_id: attempt
        for exercise_id, attempt in submission.attempts.items()
        if _said(attempt) != (_said(was[exercise_id]) if exercise_id in was else (None, None))
    }
    problems = [x.problem for x in changed.values() if x.problem]
    remarks = [
        remark
        for remark in submission.remarks
        if not (before and remark in before.remarks)
        and not any(remark.partition(";")[0] in problem for problem in problems)
    ]
    if not changed and not remarks:
        return
    Console().clear()
    print(f"{file.name}, saved at {datetime.now():%H:%M:%S}", *remarks, "", sep="\n")
    workspace = Workspace.find()
    for verdict in verdicts(replace(submission, attempts=changed), child):
        tell(verdict, changed[verdict.exercise], child, workspace)
        if verdict.status != "passed":  # of one that has passed, the panel says it
            print(f"  {standing(verdict.exercise, has_passed=False)}")


def _said(attempt: "Attempt") -> tuple[str | None, str | None]:
    return attempt.whole(), attempt.problem


def notebooks(path: Path) -> list[Path]:
    """List the notebooks to watch."""
    return ipynb.listed(path) if path.is_dir() else [path]


def saves(path: Path) -> Iterator[Path]:
    """Return an iterator over the notebooks that are saved from now on.

    Each comes when it does not change any more: Jupyter writes into the file itself, so that the
    first look at it may find half of it.
    """
    judged = {file: _stamp(file) for file in notebooks(path)}

    def look() -> Iterator[Path]:
        seen, gone = dict(judged), 0
        while True:
            time.sleep(PAUSE)
            gone = 0 if path.exists() else gone + 1
            if gone == 2:
                print(f"{path} is gone; it is watched again when it is back.")
            for file in notebooks(path):
                stamp = _stamp(file)
                if stamp and stamp == seen.get(file) and stamp != judged.get(file):
                    judged[file] = stamp
                    yield file
                seen[file] = stamp

    return look()


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what changes with every save; None where there is no file now."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
