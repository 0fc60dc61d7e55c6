"""`course hint`: the next hint of an exercise, or one by its number."""

import contextlib
from argparse import ArgumentParser, Namespace
from pathlib import Path

from course_lib.command_line.shared import find_workspace, load

NAME = "hint"
WHAT = "show a hint"
EXAMPLE = "attention/softmax 2"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the exercise, and the number of the hint."""
    parser.add_argument("exercise_id", metavar="ID")
    parser.add_argument("number", metavar="N", type=int, nargs="?", help="the next one by default")


def run(options: Namespace) -> int:
    """Print the hint, and record it in the workspace."""
    from course_lib.exercises import hint

    load(options.exercise_id)
    workspace = find_workspace()
    with contextlib.chdir(workspace.folder if workspace else Path.cwd()):
        hint(options.exercise_id, options.number)
    return 0
