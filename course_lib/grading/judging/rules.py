"""The rules of a grade: all that decides it beside the notebook."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from course_lib.checking.catalogue import ids, outline
from course_lib.grading.judging.isolation import Level

SECONDS = 20  # for all that an exercise asks of an answer
MEMORY = 2**31


@dataclass(frozen=True)
class Rules:
    """How submissions are judged.

    `exercises` are ids, or empty for those of each notebook's lesson; `points` replaces an
    exercise's own by other ones; an answer has so many `seconds` and so many bytes of `memory`;
    with `strict` an answer that is flagged has no points.
    """

    level: Level
    seed: int
    exercises: list[str] = field(default_factory=list)
    points: dict[str, float] = field(default_factory=dict)
    seconds: int = SECONDS
    memory: int = MEMORY
    strict: bool = False


def exercises_of(lessons: Iterable[str]) -> list[str]:
    """List the exercises of lessons and explorations. Raises LookupError for one without any."""
    chosen = []
    for lesson in lessons:
        own = [exercise_id for exercise_id in ids() if outline(exercise_id).lesson == lesson]
        if not own:
            known = sorted({outline(exercise_id).lesson for exercise_id in ids()})
            raise LookupError(f"no lesson {lesson} has exercises: there are {', '.join(known)}")
        chosen += own
    return chosen
