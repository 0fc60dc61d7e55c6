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
    from course_lib.checking.catalogue import ids, load
    from course_lib.checking.verdict import max_points

    rows = [
        (x.id, x.lesson, x.title, x.minutes, x.difficulty, max_points(x)) for x in map(load, ids())
    ]
    show(("exercise", "lesson", "title", "minutes", "difficulty", "points"), rows)
    return 0
