"""`course reset`: put the stub of an exercise back into a notebook of the workspace."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from course_lib.command_line import shared
from course_lib.files.errors import CommandError

NAME = "reset"
WHAT = "put the stub of an exercise back into its cell, and keep what was there"
EXAMPLE = "attention/softmax"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the exercise, the notebook where several have it, and the workspace."""
    parser.add_argument("exercise_id", metavar="ID")
    parser.add_argument(
        "notebook", metavar="NOTEBOOK", type=Path, nargs="?", help="where several have the exercise"
    )
    shared.takes_workspace(parser)


def run(options: Namespace) -> int:
    """Put the stub back, and say where the answer is kept."""
    from course_lib.checking.notebook.reset import NoPlace, restore_stub

    shared.load(options.exercise_id)
    workspace = shared.workspace(options.workspace)
    try:
        name = options.notebook and options.notebook.name
        done = restore_stub(workspace, options.exercise_id, name)
    except NoPlace as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        reason = f"{workspace.folder} cannot be written to: {error.strerror}"
        raise CommandError(f"{reason}; the notebook is as it was.") from error
    print(f"Workspace: {workspace.folder}", done, sep="\n")
    return 0
