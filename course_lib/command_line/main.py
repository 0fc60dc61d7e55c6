"""The command line `course`: what it understands, and how it ends.

A command returns 0, or 1 where what it looked at has failed. What its reader got wrong is one
sentence and 2.
"""

import argparse
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from course_lib.command_line import commands
from course_lib.files.errors import Refused
from course_lib.files.ipynb import NotANotebook


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console without ✓ shows ? for it
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    parser = _parser()
    options, unknown = parser.parse_known_args(words[:end])
    options.further = unknown + words[end + 1 :]
    if options.run is None:
        parser.print_help()
        return 0
    if options.further and options.run is not commands.learn:
        parser.error(f"{options.further[0]} is not understood")
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except (Refused, NotANotebook) as error:
        return _refuse(f"{error}")
    except ImportError as error:
        return _refuse(f"{error}: `course doctor` says what to do.")
    except BrokenPipeError:  # the reader of a pipe has gone, as in `course list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _refuse(f"{error.filename or 'a file'}: {error.strerror}.")
    except KeyboardInterrupt:
        return 130


def _refuse(sentence: str) -> int:
    print(f"course: {sentence}", file=sys.stderr)
    return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` shows how.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="course",
        description="The Transformer, built step by step in notebooks.",
        epilog="Example: course learn",
        allow_abbrev=False,
    )
    parser.set_defaults(run=None)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, run: Callable, what: str, example: str) -> argparse.ArgumentParser:
        added = subparsers.add_parser(
            name,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            epilog=f"Example: course {name} {example}".rstrip(),
            allow_abbrev=False,
        )
        added.set_defaults(run=run)
        return added

    learn = command(
        "learn",
        commands.learn,
        "fetch the data, hand out the notebooks, and start JupyterLab with all further options",
        "--no-browser --port=8899",
    )
    learn.add_argument(
        "--workspace",
        type=Path,
        metavar="FOLDER",
        default=commands.WORKSPACE,
        help="where your notebooks are to be (workspace in the course's folder)",
    )
    learn.add_argument(
        "--port",
        "--ServerApp.port",
        dest="port",
        type=int,
        metavar="NUMBER",
        help="where Lab listens (the next free one from 8888)",
    )

    check = command(
        "check",
        commands.check,
        "judge the exercises of a notebook, without running its other cells",
        "workspace/00_start_here.ipynb --exercise start/hello",
    )
    check.add_argument("notebook", metavar="NOTEBOOK", type=Path)
    check.add_argument("--exercise", metavar="ID", help="judge this one alone")

    command("progress", commands.progress, "show what has passed, and what is next", "")
    command("list", commands.list_exercises, "show all exercises", "")

    hint = command("hint", commands.hint, "show a hint", "attention/softmax 2")
    hint.add_argument("id", metavar="ID")
    hint.add_argument("number", metavar="N", type=int, nargs="?", help="the next one by default")

    solution = command(
        "solution", commands.solution, "print the library's own code", "attention/softmax"
    )
    solution.add_argument("id", metavar="ID")

    reset = command(
        "reset",
        commands.reset,
        "put the stub of an exercise back into its cell, and keep what stood there",
        "attention/softmax",
    )
    reset.add_argument("id", metavar="ID")
    reset.add_argument(
        "notebook", metavar="NOTEBOOK", type=Path, nargs="?", help="where several have the exercise"
    )

    fetch = command("fetch", commands.fetch, "download the lessons' data and models", "cmudict")
    fetch.add_argument("items", metavar="ITEM", nargs="*", help="all by default")
    fetch.add_argument("--remove", action="store_true", help="free their space instead")

    command("doctor", commands.doctor, "look for what would keep the course from running", "")

    verify = command(
        "verify",
        commands.verify,
        "compare each component with its oracle, and try the checks on wrong answers",
        "--markdown",
    )
    verify.add_argument("--markdown", action="store_true", help="print what the README shows")

    grade = command(
        "grade",
        commands.grade,
        "judge notebooks that were handed in, each answer in a sandbox, and write the grades",
        "submissions.zip --out grades --lesson 03",
    )
    grade.add_argument(
        "submissions", metavar="SUBMISSIONS", type=Path, help="a folder, a zip file or a notebook"
    )
    grade.add_argument(
        "--out", metavar="FOLDER", type=Path, required=True, help="where results are to be written"
    )
    grade.add_argument(
        "--lesson", metavar="NN", action="append", default=[],
        help="grade this lesson's exercises (those of each notebook's own lesson); repeatable",
    )  # fmt: skip
    grade.add_argument(
        "--exercise", metavar="ID", action="append", default=[],
        help="grade this exercise; repeatable",
    )  # fmt: skip
    grade.add_argument(
        "--points", metavar="ID=N", action="append", default=[],
        help="let an exercise be worth N points; repeatable",
    )  # fmt: skip
    grade.add_argument("--due", metavar="TIME", help='what comes later is late: "2026-12-01 23:59"')
    grade.add_argument(
        "--late-penalty", metavar="PERCENT", type=float, default=0.0,
        help="take so much off the score of what is late (0)",
    )  # fmt: skip
    grade.add_argument(
        "--seconds", metavar="N", type=int, default=20, help="for each answer, in all (20)"
    )
    grade.add_argument(
        "--jobs", metavar="N", type=int, help="notebooks judged at once (one a processor)"
    )
    grade.add_argument("--seed", metavar="N", type=int, help="of the inputs (drawn, and recorded)")
    grade.add_argument(
        "--isolation", choices=("bubblewrap", "landlock", "plain"), metavar="LEVEL",
        help="bubblewrap, landlock or plain (the first that this machine has)",
    )  # fmt: skip
    grade.add_argument(
        "--trust", action="store_true",
        help="allow plain processes, which keep no student's code from your files",
    )  # fmt: skip
    grade.add_argument("--scheduler", metavar="ADDRESS", help="hand batches to this Dask scheduler")
    grade.add_argument(
        "--canvas", metavar="FILE", type=Path, help="fill in this gradebook, exported from Canvas"
    )
    grade.add_argument("--assignment", metavar="NAME", help="the column of --canvas")
    grade.add_argument(
        "--moodle", metavar="FILE", type=Path, help="fill in this grading worksheet of Moodle"
    )

    export = command(
        "export",
        commands.export,
        "write a lesson's exercises as nbgrader, otter-grader or Gradescope takes them",
        "gradescope 03 for_gradescope",
    )
    export.add_argument(
        "tool", choices=("nbgrader", "otter", "gradescope"), metavar="TOOL",
        help="nbgrader, otter or gradescope",
    )  # fmt: skip
    export.add_argument("lesson", metavar="LESSON", help="such as 03")
    export.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")
    return parser
