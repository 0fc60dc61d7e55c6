"""`course hint`: the next hint of an exercise, or one by its number."""

import contextlib
from argparse import ArgumentParser, Namespace
from pathlib import Path

from course_lib.command_line.shared import find_workspace
from course_lib.files.errors import CommandError

NAME = "hint"
WHAT = "show a hint"
EXAMPLE = "attention/softmax 2"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the exercise, and the number of the hint."""
    parser.add_argument("exercise_id", metavar="ID")
    parser.add_argument("number", metavar="N", type=int, nargs="?", help="the next one by default")


def run(options: Namespace) -> int:
    """Print the hint, and record it in the workspace."""
    from course_lib.checking.catalogue import UnknownExercise
    from course_lib.checking.telling.hints import NoHint, tell

    workspace = find_workspace()
    with contextlib.chdir(workspace.folder if workspace else Path.cwd()):
        try:
            print(tell(options.exercise_id, options.number))
        except (NoHint, UnknownExercise) as error:
            raise CommandError(str(error)) from None
    return 0
