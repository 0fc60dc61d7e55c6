"""`course solution`: the library's own code for an exercise."""

from argparse import ArgumentParser, Namespace

from course_lib.command_line.shared import load

NAME = "solution"
WHAT = "print the library's own code"
EXAMPLE = "attention/softmax"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the exercise."""
    parser.add_argument("exercise_id", metavar="ID")


def run(options: Namespace) -> int:
    """Print the reference."""
    from course_lib.exercises import solution

    load(options.exercise_id)
    solution(options.exercise_id)
    return 0
