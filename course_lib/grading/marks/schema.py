"""The types of results.json: `results.schema.json`, which describes each field, says the same."""

from typing import Literal, NotRequired, TypedDict

from course_lib.checking.looks import Status as ExerciseStatus
from course_lib.grading.judging.isolation import Level
from course_lib.grading.submissions.platforms import Platform

BY_HAND = "by_hand/"  # begins the ids of what a person marks
EXTRA = "by_hand/extra"  # points that a person gives beside all exercises
Option = str | float | bool | list[str]  # of the command, as it was given
Missing = Literal["empty", "zero"]
Status = Literal["graded", "unreadable", "missing", "superseded"]


class PropertyResult(TypedDict):
    """One property that was asked; `held` is None where nothing could be said of it."""

    sentence: str
    points: float
    held: bool | None


class Case(TypedDict):
    """The smallest case that failed, as the panel shows it: a heading, and values by label."""

    heading: str
    values: dict[str, str]


class Flag(TypedDict):
    """What is unusual in an answer, and where in its notebook: cells and lines from 1."""

    cell: int
    line: int
    seen: str


class ExerciseResult(TypedDict):
    """The verdict on one answer."""

    status: Literal[ExerciseStatus, "marked", "to be marked"]
    points: float
    max_points: float
    message: str
    source: NotRequired[str]
    same_as_library: NotRequired[bool]
    dispatched: NotRequired[list[str]]
    flags: NotRequired[list[Flag]]
    properties: NotRequired[list[PropertyResult]]
    case: NotRequired[Case]


class Entry(TypedDict):
    """What the judge says of one notebook."""

    lesson: str | None
    status: Status
    message: str
    exercises: dict[str, ExerciseResult]
    words: NotRequired[dict[str, str]]
    python: NotRequired[str]


class SubmissionResult(Entry):
    """One notebook of one student, or a student without any.

    The number is Canvas's or Moodle's; name and email are the roster's.
    """

    student: str
    number: NotRequired[str]
    platform: NotRequired[Platform]
    name: NotRequired[str]
    email: NotRequired[str]
    notebook: str
    late: bool
    lateness: NotRequired[str]
    score: float
    max_score: float


class Results(TypedDict):
    """The whole file."""

    isolation: Level
    seed: int
    submissions: list[SubmissionResult]
    missing: NotRequired[Missing]
    options: NotRequired[dict[str, Option]]
    gradebooks: NotRequired[dict[str, float]]
