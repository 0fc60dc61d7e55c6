"""`course grade`: judge a folder or zip file of notebooks that were handed in."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from course_lib.grading.options import SECONDS, Group, Rule

NAME = "grade"
WHAT = "judge notebooks that were handed in, each answer in a sandbox, and write the grades"
EXAMPLE = "submissions.zip --out grades --lesson 03"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare what is graded, by which rules, how, and which gradebooks are filled in."""
    rules: list[Rule] = []
    for title, declare in (
        ("what is graded", _submissions),
        ("by which rules", _rules),
        ("marks by hand, and earlier results", _marks),
        ("gradebooks to fill in", _gradebooks),
        ("how it runs", _process),
    ):
        group = Group(parser, title)
        declare(group)
        rules += group.rules
    parser.set_defaults(rules=tuple(rules))


def _submissions(group: Group) -> None:
    group.add(
        "submissions", metavar="SUBMISSIONS", type=Path, help="a folder, a zip file or a notebook"
    )
    group.rule(
        "--lesson", metavar="NN", action="append", default=[],
        help="grade this lesson's exercises, or an exploration's, such as 04_trees (those of each "
        "notebook's own); repeatable",
    )  # fmt: skip
    group.rule(
        "--exercise", metavar="ID", action="append", default=[],
        help="grade this exercise; repeatable",
    )  # fmt: skip
    group.rule(
        "--exam", metavar="FILE", type=Path, help="grade pages of `course exam` by its key.json"
    )
    group.rule(
        "--roster", metavar="FILE", type=Path,
        help="who is in the class: columns id, name, email, due (the gradebook's, if there is one)",
    )  # fmt: skip


def _rules(group: Group) -> None:
    group.rule(
        "--points", metavar="ID=N", action="append", default=[],
        help="let an exercise be worth N points; repeatable",
    )  # fmt: skip
    group.rule(
        "--strict", action="store_true",
        help="give no points to an answer that is flagged as unusual (it is shown to you)",
    )  # fmt: skip
    group.rule(
        "--seconds", SECONDS, metavar="N", type=int,
        help=f"for each answer, in all ({SECONDS})",
    )  # fmt: skip
    group.add("--seed", metavar="N", type=int, help="of the inputs (drawn, and recorded)")
    group.rule(
        "--due",
        metavar="TIME",
        help='what comes later is late: "2026-12-01 23:59", this minute included',
    )
    group.rule(
        "--late-penalty", "0", metavar="PERCENT",
        help="take so much off the score of what is late (0): 20, or 10/day for each day begun",
    )  # fmt: skip
    group.rule(
        "--grace", 0.0, metavar="MINUTES", type=float,
        help="nothing is late until so long after its time (0)",
    )  # fmt: skip
    group.rule(
        "--extensions", metavar="FILE", type=Path,
        help="a table of students who have more time: columns id, due, handed in (the roster's)",
    )  # fmt: skip
    group.rule(
        "--missing", "empty", choices=("empty", "zero"),
        help="what work that was not graded is in gradebooks: an empty cell, or zero (empty)",
    )  # fmt: skip


def _marks(group: Group) -> None:
    group.rule(
        "--rubric", metavar="FILE", type=Path,
        help="questions to be marked by hand: columns question, points, criterion",
    )  # fmt: skip
    group.add(
        "--marks", metavar="FILE", type=Path,
        help="the table marks.csv of an earlier run, filled in (that of --earlier)",
    )  # fmt: skip
    group.add(
        "--earlier", metavar="FOLDER", type=Path,
        help="grade again, with the seed of these results, and their options where you give no "
        "others; say what has changed",
    )  # fmt: skip
    group.add(
        "--keep-others", action="store_true",
        help="of those who are not among the submissions, keep the rows of --earlier: an appeal",
    )  # fmt: skip


def _gradebooks(group: Group) -> None:
    group.rule(
        "--canvas", metavar="FILE", type=Path, help="fill in this gradebook, exported from Canvas"
    )
    group.rule("--assignment", metavar="NAME", help="the column of --canvas")
    group.rule(
        "--moodle", metavar="FILE", type=Path, help="fill in this grading worksheet of Moodle"
    )
    group.rule(
        "--scale", metavar="N", type=float,
        help="let all points be N in the gradebook (as many as it has for the assignment)",
    )  # fmt: skip


def _process(group: Group) -> None:
    group.add(
        "--out", metavar="FOLDER", type=Path, required=True, help="where results are to be written"
    )
    group.add("--jobs", metavar="N", type=int, help="notebooks judged at once (one a processor)")
    group.add(
        "--isolation", choices=("bubblewrap", "landlock", "plain"), metavar="LEVEL",
        help="bubblewrap, landlock or plain (the first that this machine has)",
    )  # fmt: skip
    group.add(
        "--trust", action="store_true",
        help="allow plain processes, which keep no student's code from your files",
    )  # fmt: skip
    group.add("--scheduler", metavar="ADDRESS", help="hand batches to this Dask scheduler")


def run(options: Namespace) -> int:
    """Write results and reports; return 0 once every submission has its row."""
    from course_lib.grading import run as grading

    return grading.run(options)
