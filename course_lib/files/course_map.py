"""The map of the course: its lessons, their exercises, and where each lecture topic is taught.

Nothing here loads an exercise, which takes seconds: catalogue.json says what there is to know.
"""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path

from course_lib.files.paths import ROOT
from course_lib.files.workspace import Workspace

EXERCISES = ROOT / "course_lib" / "exercises" / "catalogue.json"
MINUTES = re.compile(r"\*\*(\d+) minutes\b(?:, of which (\d+) are the core path)?")


@dataclass(frozen=True)
class Lesson:
    """One lesson: its number, its title, the question that it answers, and its file, if written."""

    number: str
    title: str
    question: str
    file: Path | None

    @property
    def written(self) -> bool:
        """Return True if the lesson is written."""
        return self.file is not None

    @property
    def minutes(self) -> int:
        """Return how long the lesson takes, as its first cell says; 0 for one that is to come."""
        return self._stated()[0]

    @property
    def core_minutes(self) -> int:
        """Return how long its core path takes: all of it, where nothing is optional."""
        return self._stated()[1]

    def _stated(self) -> tuple[int, int]:
        if not self.file:
            return 0, 0
        every, core = MINUTES.findall(self.file.read_text("utf8"))[0]
        return int(every), int(core or every)


@dataclass(frozen=True)
class Outline:
    """What there is to know of an exercise before it is loaded."""

    id: str
    lesson: str
    title: str
    minutes: int
    difficulty: int
    points: int
    hints: tuple[str, ...]
    optional: bool = False

    @property
    def effort(self) -> str:
        """Say how long the exercise takes, how hard it is (in dots), and whether it is optional."""
        dots = "●" * self.difficulty + "○" * (3 - self.difficulty)
        return f"{self.minutes} minutes · {dots}{' · optional' if self.optional else ''}"


@dataclass(frozen=True)
class Topic:
    """One topic of the five lectures (L1 to L5), and where a lesson teaches and measures it.

    `section` is the heading in its lesson, `measured` a number and a heading, such as
    "04 Positions in a tree (optional)". `exercises` and `results`, names of kept results, are
    lists with spaces between. All but `section` may be empty.
    """

    id: str
    topic: str
    lectures: str
    lesson: str
    section: str
    exercises: str
    measured: str
    results: str


@dataclass(frozen=True)
class Disagreement:
    """A place where the lectures disagree or slip, what holds, and the section that shows both."""

    id: str
    printed: str
    holds: str
    lesson: str
    section: str


def lessons() -> list[Lesson]:
    """List all lessons in their order, with those that are still to come."""
    files = {file.name[:2]: file for file in (ROOT / "lessons").glob("[0-9][0-9]_*.py")}
    return [Lesson(**row, file=files.get(row["number"])) for row in _table("lessons")]


def exercises() -> list[Outline]:
    """List the course's own exercises, in the order of the lessons and of their cells."""
    rows = json.loads(EXERCISES.read_text("utf8"))
    return [Outline(**row | {"hints": tuple(row["hints"])}) for row in rows]


def topics() -> list[Topic]:
    """List the topics of the five lectures."""
    return [Topic(**row) for row in _table("topics")]


def disagreements() -> list[Disagreement]:
    """List the places where the five lectures disagree or slip."""
    return [Disagreement(**row) for row in _table("disagreements")]


def hours() -> int:
    """Return about how long the course takes."""
    return round(sum(lesson.minutes for lesson in lessons()) / 60)


def course_map() -> str:
    """Return the table of lessons with links and, in a workspace, what has passed; as Markdown."""
    workspace, every = Workspace.find(), exercises()
    head = "| lesson | | the question it answers | minutes | passed |"
    rows = [head, "|:-|:-|:-|-:|-:|"]
    for lesson in lessons():
        title, minutes = _title(lesson), lesson.minutes or ""
        if lesson.file:
            title = f"[{title}]({lesson.file.stem}.ipynb)"
        own = [x for x in every if x.lesson == lesson.number]
        done = {x.id for x in own if workspace and workspace.record(x.id).passed}
        needed = {x.id for x in own if not x.optional}
        tick = "✓&nbsp;" if own and not needed - done else ""
        share = f"{tick}{len(done)}&nbsp;of&nbsp;{len(own)}" if own else ""
        rows.append(f"| {lesson.number} | {title} | {lesson.question} | {minutes} | {share} |")
    return "\n".join(rows)


def topic_map() -> str:
    """Return the table of topics and their lessons, as Markdown."""
    titles = {lesson.number: _title(lesson) for lesson in lessons()}
    rows = [
        f"| {x.id} | {x.topic} | {x.lectures} | {x.lesson} {titles[x.lesson]} |" for x in topics()
    ]
    return "\n".join(["| | topic | lectures | taught in |", "|:-|:-|:-|:-|", *rows])


def _title(lesson: Lesson) -> str:
    return lesson.title if lesson.written else f"{lesson.title} *(coming)*"


def _table(name: str) -> list[dict[str, str]]:
    with (ROOT / "lessons" / f"{name}.tsv").open(encoding="utf8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
