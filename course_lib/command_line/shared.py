"""What several commands share: the workspace, an exercise by its id, a table."""

import os
import sys
from argparse import _ActionsContainer
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.files.errors import CommandError
from course_lib.files.workspace import VARIABLE, Workspace

if TYPE_CHECKING:
    from course_lib.checking.exercise import Exercise


def load(exercise_id: str) -> "Exercise":
    """Return an exercise. Raises CommandError for an id that none has."""
    from course_lib.checking import catalogue

    try:
        return catalogue.load(exercise_id)
    except catalogue.UnknownExercise as error:
        raise CommandError(str(error)) from None


def takes_workspace(parser: _ActionsContainer) -> None:
    """Declare which workspace a command uses, if not the one around the current folder."""
    parser.add_argument(
        "--workspace", type=Path, metavar="FOLDER", help="yours (the one you are in)"
    )


def workspace(named: Path | None) -> Workspace:
    """Return the workspace that is named, or else the one that the command is run in.

    There is no other: what a command reads or writes is never in a place that nobody named.
    Raises CommandError where there is none.
    """
    if found := Workspace.at(named) if named else Workspace.find():
        return found
    folder = named or os.environ.get(VARIABLE) or Path.cwd()
    # where `make learn` makes one
    yours = "workspace" if Workspace.at(Path("workspace")) else "FOLDER"
    raise CommandError(
        f"{folder} is no workspace: go to yours, or add `--workspace {yours}`; `course learn` "
        "makes one."
    )


def used(workspace: Workspace | None, folder: Path) -> str:
    """Say in one line which workspace is used by a command that could do without."""
    if workspace:
        return f"Workspace: {workspace.folder}"
    return f"Not recorded: {folder} is in no workspace. `course learn` makes one."


def printable(text: str) -> str:
    """Replace what a terminal obeys in a text that may hold a notebook's own."""
    return "".join(
        x if x.isprintable() or x in "\n\t" else "\N{REPLACEMENT CHARACTER}" for x in text
    )


def show(names: tuple[str, ...], rows: list[tuple]) -> None:
    """Print a table, its numbers to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for name, value in zip(names, rows[0], strict=True):
        justify = "right" if isinstance(value, int) else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name == names[0])
    for row in rows:
        table.add_row(*map(str, row))
    # a terminal's width, or that of a wide one where this goes into a file
    width = None if sys.stdout.isatty() else 120
    Console(width=width, markup=False, highlight=False).print(table)
