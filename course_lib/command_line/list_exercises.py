"""`course list`: all exercises."""

from argparse import ArgumentParser, Namespace

from course_lib.command_line.shared import show

NAME = "list"
WHAT = "show all exercises"
EXAMPLE = ""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare nothing: it shows all."""


def run(options: Namespace) -> int:
    """Print a row for each exercise."""
    from course_lib.checking.catalogue import ids, outline

    rows = [(x.id, x.lesson, x.title, x.effort, x.points) for x in map(outline, ids())]
    show(("exercise", "lesson", "title", "effort", "points"), rows)
    return 0
