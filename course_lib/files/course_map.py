"""The map of the course: its lessons and explorations, and their exercises.

A lesson and an exploration, which stays beside its lesson, are both pages: one file, one notebook.
The number of an exploration begins with its lesson's: "04_trees" belongs to "04".

Nothing here loads an exercise, which takes seconds: catalogue.json says what there is to know, and
solutions.json what `solution` prints.
"""

import csv
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course_lib.files.ipynb import EXPLORATIONS
from course_lib.files.paths import PACKAGE, ROOT
from course_lib.files.workspace import Workspace

LESSONS = ROOT / "lessons"
EXERCISES = PACKAGE / "exercises" / "catalogue.json"
SOLUTIONS = PACKAGE / "exercises" / "solutions.json"
MINUTES = re.compile(r"\*\*(\d+) minutes\b")


@dataclass(frozen=True)
class Page:
    """A lesson or an exploration: number, title, the question it answers, and file, if written."""

    number: str
    title: str
    question: str
    file: Path | None

    @property
    def written(self) -> bool:
        """Return True if the page is written."""
        return self.file is not None

    @property
    def is_exploration(self) -> bool:
        """Return True if no lesson needs this page."""
        return is_exploration(self.number)

    @property
    def notebook(self) -> Path:
        """Return the path of the notebook in a folder of notebooks. Raises LookupError."""
        if not self.file:
            raise LookupError(f"{self.number} is not written yet")
        return notebook_of(self.file)

    @property
    def minutes(self) -> int:
        """Return how long the page takes, as its first cell says; 0 for one that is to come."""
        if not self.file:
            return 0
        return int(MINUTES.findall(self.file.read_text("utf8"))[0])


@dataclass(frozen=True)
class Outline:
    """What there is to know of an exercise before it is loaded; `lesson` numbers its page.

    `name` is what its answer is called, `module` where the reference is, and `method` the one to
    write of a class; a `broken` one is handed out with a fault. `tools` are what the solution calls
    of torch and Python.
    """

    id: str
    lesson: str
    title: str
    name: str
    module: str
    method: str | None
    broken: bool
    minutes: int
    difficulty: int
    points: int
    hints: tuple[str, ...]
    tools: tuple[str, ...]

    @property
    def needed(self) -> bool:
        """Return True if its lesson is not done without it."""
        return not is_exploration(self.lesson)

    @property
    def page(self) -> str:
        """Say which page the exercise is on: "lesson 04" or "exploration 04_trees"."""
        kind = "exploration" if is_exploration(self.lesson) else "lesson"
        return f"{kind} {self.lesson}"

    @property
    def effort(self) -> str:
        """Say how long the exercise takes, and how hard it is (in dots)."""
        dots = "●" * self.difficulty + "○" * (3 - self.difficulty)
        return f"{self.minutes} minutes · {dots}"


def page_files() -> dict[str, Path]:
    """Map the numbers of the pages to their files: lessons, each before its explorations."""
    folders = (LESSONS, LESSONS / EXPLORATIONS)
    files = [file for folder in folders for file in folder.glob("[0-9][0-9]_*.py")]
    return {number_of(file): file for file in sorted(files, key=number_of)}


def number_of(file: Path) -> str:
    """Return the number of a page: "04" of 04_positions.py, "04_trees" of an exploration."""
    stem = file.name.partition(".")[0]  # a newer release is 04_positions.new.ipynb
    return stem if file.parent.name == EXPLORATIONS else stem[:2]


def lesson_of(number: str) -> str:
    """Return the number of a page's lesson: "04" for "04" and for "04_trees"."""
    return number[:2]


def is_exploration(number: str) -> bool:
    """Tell whether a page's number is that of an exploration."""
    return number != lesson_of(number)


def notebook_of(file: Path) -> Path:
    """Return the path of a page's notebook in a folder of notebooks."""
    return file.relative_to(LESSONS).with_suffix(".ipynb")


def pages() -> list[Page]:
    """List lessons and explorations in their order, with those that are still to come."""
    files = page_files()
    return [Page(**row, file=files.get(row["number"])) for row in table("lessons")]


def lessons() -> list[Page]:
    """List the lessons in their order, with those that are still to come."""
    return [page for page in pages() if not page.is_exploration]


def explorations(lesson: str) -> list[Page]:
    """List the explorations of a lesson."""
    return [x for x in pages() if x.is_exploration and lesson_of(x.number) == lesson]


def exercises() -> list[Outline]:
    """List the course's own exercises, in the order of the lessons and of their cells."""
    rows = json.loads(EXERCISES.read_text("utf8"))
    listed = ("hints", "tools")
    return [Outline(**row | {x: tuple(row[x]) for x in listed}) for row in rows]


def printed_solution(exercise_id: str) -> str | None:
    """Return what `solution` prints of one of the course's own exercises, None for another."""
    return _solutions().get(exercise_id)


@cache
def _solutions() -> dict[str, str]:
    return json.loads(SOLUTIONS.read_text("utf8"))


def hours() -> int:
    """Return about how long the lessons take."""
    return round(sum(lesson.minutes for lesson in lessons()) / 60)


def course_map() -> str:
    """Return the table of lessons with links and, in a workspace, what has passed; as Markdown."""
    workspace, every = Workspace.find(), exercises()
    head = "| lesson | | the question it answers | minutes | passed |"
    rows = [head, "|:-|:-|:-|-:|-:|"]
    done = {x.id for x in every if workspace and workspace.record(x.id).passed}
    for lesson in lessons():
        title, minutes = _title(lesson), lesson.minutes or ""
        if lesson.written:
            title = f"[{title}]({lesson.notebook.as_posix()})"
        own = {x.id: x for x in every if x.lesson == lesson.number}
        for page in explorations(lesson.number):
            beside = {x.id for x in every if x.lesson == page.number}
            tick = "✓&nbsp;" if beside and beside <= done else ""
            title += f"<br>{tick}[{page.title}]({page.notebook.as_posix()}), an exploration"
        tick = "✓&nbsp;" if own and own.keys() <= done else ""
        share = f"{tick}{len(done & own.keys())}&nbsp;of&nbsp;{len(own)}" if own else ""
        rows.append(f"| {lesson.number} | {title} | {lesson.question} | {minutes} | {share} |")
    return "\n".join(rows)


def _title(lesson: Page) -> str:
    return lesson.title if lesson.written else f"{lesson.title} *(coming)*"


def table(name: str) -> list[dict[str, str]]:
    """Read a table of the lessons: its rows, by the names of its columns."""
    with (ROOT / "lessons" / f"{name}.tsv").open(encoding="utf8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
