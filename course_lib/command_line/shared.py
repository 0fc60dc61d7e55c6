"""What several commands share: the workspace, an exercise by its id, a table."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.files.errors import CommandError
from course_lib.files.paths import IS_CLONE, ROOT
from course_lib.files.workspace import VARIABLE, Workspace

if TYPE_CHECKING:
    from course_lib.checking.exercise import Exercise

# where `course learn` makes one if it is not told: the clone has a place for it
_PLACE = ROOT / "workspace" if IS_CLONE else Path("transformer-course")
WORKSPACE = Path(os.environ.get(VARIABLE) or _PLACE).expanduser()


def load(exercise_id: str) -> "Exercise":
    """Return an exercise. Raises CommandError for an id that none has."""
    from course_lib.checking import catalogue

    try:
        return catalogue.load(exercise_id)
    except catalogue.UnknownExercise as error:
        raise CommandError(str(error)) from None


def find_workspace() -> Workspace | None:
    """Return the workspace around the current folder, else the course's own, else None."""
    return Workspace.find() or Workspace.find(WORKSPACE)


def workspace() -> Workspace:
    """Return the same workspace. Raises CommandError where there is none."""
    if around := find_workspace():
        return around
    raise CommandError("there is no workspace here: run `course learn` first, or go to its folder.")


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
