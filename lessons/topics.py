"""Where each topic of the five lectures is taught, and where the lectures disagree or slip."""

from dataclasses import dataclass

from course_lib.files.course_map import table


@dataclass(frozen=True)
class Topic:
    """One topic of the five lectures (L1 to L5), and where a lesson teaches and measures it.

    `section` is a heading of the lesson or of one of its explorations, `measured` a lesson's number
    and such a heading: "04 Who praised whom". `exercises` and `results`, names of kept results, are
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


def topics() -> list[Topic]:
    """List the topics of the five lectures."""
    return [Topic(**row) for row in table("topics")]


def disagreements() -> list[Disagreement]:
    """List the places where the five lectures disagree or slip."""
    return [Disagreement(**row) for row in table("disagreements")]
