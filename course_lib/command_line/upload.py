"""`course upload`: grades of a run into Canvas or Moodle, over their interfaces."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from course_lib.files.errors import CommandError

NAME = "upload"
WHAT = "show which grades Canvas or Moodle would get, and send them"
EXAMPLE = "canvas grades --url https://canvas.example.edu --course 12 --assignment 345"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare where grades come from, and where they go."""
    parser.add_argument(
        "tool", choices=("canvas", "moodle"), metavar="TOOL",
        help="canvas or moodle; the token is in the variable CANVAS_TOKEN or MOODLE_TOKEN",
    )  # fmt: skip
    parser.add_argument(
        "grades", metavar="FOLDER", type=Path, help="that `course grade` has written"
    )
    parser.add_argument("--url", metavar="URL", required=True, help="of the server")
    parser.add_argument("--course", metavar="N", default="", help="its number in Canvas")
    parser.add_argument("--assignment", metavar="N", required=True, help="its number")
    parser.add_argument(
        "--scale", metavar="N", type=float, help="let all points be N (as many as Canvas has)"
    )
    parser.add_argument("--send", action="store_true", help="send them")


def run(options: Namespace) -> int:
    """Print what would be sent; with `--send`, send it."""
    import httpx

    from course_lib.grading.gradebooks.by_api import Canvas, Moodle, Place, Refused, plan
    from course_lib.grading.reports.shared.text import one_line
    from course_lib.grading.submissions.regrade import read

    variable = f"{options.tool.upper()}_TOKEN"
    token = os.environ.get(variable, "")
    if not token:
        raise CommandError(f"put your token into the environment variable {variable}.")
    numbers = [options.assignment, *([options.course] if options.tool == "canvas" else [])]
    if not all(number.isdecimal() and number.isascii() for number in numbers):
        raise CommandError("--assignment, and --course of Canvas, are the numbers in its address.")
    if options.scale is not None and not 0 < options.scale < 1e6:
        raise CommandError("--scale is a number of points, more than 0.")
    try:
        results = read(options.grades)
        place = Place(options.url.rstrip("/"), token, options.assignment, options.course)
        server = Canvas(place) if options.tool == "canvas" else Moodle(place)
        grades, remarks = plan(server, results, options.scale)
        for one in grades:
            print(one_line(f"{one.label} ({one.student}): {one.grade}"))
        print(*remarks.sentences(), sep="\n")
        if options.send and grades:
            print(one_line(server.send(grades)))
        else:
            print(f"{len(grades)} grades with comments; nothing was sent: --send does.")
    except OSError as error:
        raise CommandError(f"{options.grades} cannot be read: {error.strerror}.") from None
    except httpx.HTTPError as error:
        raise CommandError(one_line(f"{options.url}: {error}.")) from None
    except (Refused, ValueError) as error:
        raise CommandError(one_line(str(error))) from None
    return 0
