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
    from course_lib.checking.catalogue import outlines
    from course_lib.files.course_map import is_exploration

    rows = []
    for x in outlines():
        beside = " · exploration" if is_exploration(x.lesson) else ""
        rows.append((x.id, x.lesson, x.title, f"{x.effort}{beside}", x.points))
    show(("exercise", "lesson", "title", "effort", "points"), rows)
    return 0
