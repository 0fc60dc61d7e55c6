"""The map of the course: its lessons, and in which of them each lecture topic is taught."""

import csv
from dataclasses import dataclass

from course_lib.files.paths import ROOT


@dataclass(frozen=True)
class Lesson:
    """One lesson: its number, its title, the question that it answers, and whether it is here."""

    number: str
    title: str
    question: str
    written: bool


@dataclass(frozen=True)
class Topic:
    """One topic of the five lectures (L1 to L5), and the lesson that teaches it."""

    id: str
    topic: str
    lectures: str
    lesson: str


def lessons() -> list[Lesson]:
    """List all lessons in their order, with those that are still to come."""
    written = {file.name[:2] for file in (ROOT / "lessons").glob("[0-9][0-9]_*.py")}
    return [Lesson(**row, written=row["number"] in written) for row in _table("lessons")]


def topics() -> list[Topic]:
    """List the topics of the five lectures."""
    return [Topic(**row) for row in _table("topics")]


def course_map() -> str:
    """Return the table of lessons, as Markdown."""
    rows = [f"| {x.number} | {_title(x)} | {x.question} |" for x in lessons()]
    return "\n".join(["| lesson | | the question it answers |", "|:-|:-|:-|", *rows])


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
