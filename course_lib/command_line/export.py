"""`course export`: write a lesson's exercises as another tool takes them."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

NAME = "export"
WHAT = "write a lesson's exercises as nbgrader, otter-grader or Gradescope takes them"
EXAMPLE = "gradescope 03 for_gradescope"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the tool, the lesson or exploration, and the folder."""
    parser.add_argument(
        "tool", choices=("nbgrader", "otter", "gradescope"), metavar="TOOL",
        help="nbgrader, otter or gradescope",
    )  # fmt: skip
    parser.add_argument("lesson", metavar="LESSON", help="such as 03, or 04_trees")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")


def run(options: Namespace) -> int:
    """Write the files, and name them."""
    from course_lib.grading.exports import export

    files = export(options.tool, options.lesson, options.folder)
    print(*files, f"{options.folder / 'README.md'} says how to go on.", sep="\n")
    return 0
