"""`course hint`: the next hint of an exercise, or one by its number."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from course_lib.command_line import shared
from course_lib.files.errors import CommandError
from course_lib.files.workspace import Workspace

NAME = "hint"
WHAT = "show a hint"
EXAMPLE = "attention/softmax 2"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the exercise, the number of the hint, and the workspace."""
    parser.add_argument("exercise_id", metavar="ID")
    parser.add_argument("number", metavar="N", type=int, nargs="?", help="the next one by default")
    shared.takes_workspace(parser)


def run(options: Namespace) -> int:
    """Print the hint, and record it in the workspace, if there is one."""
    from course_lib.checking.catalogue import UnknownExercise
    from course_lib.checking.explain.hints import NoHint, tell

    named = options.workspace
    workspace = shared.workspace(named) if named else Workspace.find()
    try:
        told = tell(options.exercise_id, options.number, workspace)
    except (NoHint, UnknownExercise) as error:
        raise CommandError(str(error)) from None
    print(shared.used(workspace, Path.cwd()), told, sep="\n")
    return 0
