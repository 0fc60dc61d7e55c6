"""`course solution`: the library's own code for an exercise, or in a lesson's notebook."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from course_lib.command_line.shared import load
from course_lib.files.course_map import printed_solution
from course_lib.files.errors import CommandError

NAME = "solution"
WHAT = "print the library's own code, or write a lesson's notebook with it"
EXAMPLE = "attention/softmax"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the exercise, and the notebook that may be written."""
    parser.add_argument("exercise_id", metavar="ID", help="an exercise, or a lesson's number")
    parser.add_argument(
        "--notebook", metavar="FILE", type=Path, help="write the notebook of lesson ID, solved"
    )


def run(options: Namespace) -> int:
    """Print the reference, or write the notebook."""
    if options.notebook:
        _write(options.exercise_id, options.notebook)
        return 0
    text = printed_solution(options.exercise_id)
    if text is None:  # an instructor's own, or none
        exercise = load(options.exercise_id)
        from course_lib.checking.notebook.solution_text import solution_text

        text = solution_text(exercise)
    print(text)
    return 0


def _write(lesson: str, path: Path) -> None:
    from course_lib.checking.notebook.solution_text import solution_text
    from course_lib.files import ipynb
    from course_lib.grading.exports import release

    if path.exists():
        raise CommandError(f"{path} is there already: name another file.")
    try:
        notebook = ipynb.read(release.path(lesson))
    except LookupError as error:
        raise CommandError(f"{error.args[0]}.") from None
    before: list[str] = []
    for cell in notebook["cells"]:
        if exercise_id := ipynb.exercise(cell):
            ipynb.set_text(cell, solution_text(load(exercise_id), "\n".join(before)))
        before.append(ipynb.code(cell))
    ipynb.write(path, notebook)
    print(f"{path}: lesson {lesson} with every answer in.")
