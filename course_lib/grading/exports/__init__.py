"""Exports: a lesson's exercises as other tools take them, and what each of them cannot protect."""

from pathlib import Path

from course_lib.files.atomic import write_atomically
from course_lib.files.errors import CommandError
from course_lib.grading.exports import gradescope, nbgrader, otter

TOOLS = {"nbgrader": nbgrader.files, "otter": otter.files, "gradescope": gradescope.files}


def export(tool: str, lesson: str, folder: Path) -> list[Path]:
    """Write a lesson for one of the `TOOLS` into a new or empty folder; return the files.

    Raises CommandError.
    """
    try:
        files = TOOLS[tool](lesson)
    except LookupError as error:
        raise CommandError(f"{error.args[0]}.") from None
    try:
        if folder.exists() and any(folder.iterdir()):
            raise CommandError(f"{folder} is not empty: name another folder.")
        for name, content in files.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise CommandError(f"{folder} cannot be written to: {error.strerror}.") from None
    return [folder / name for name in files]
