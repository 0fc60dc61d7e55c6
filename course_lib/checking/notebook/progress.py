"""Where a learner is in a lesson: how much has passed, how long the rest takes, what is next."""

from dataclasses import dataclass

from course_lib.checking.catalogue import outlines
from course_lib.files.course_map import Outline, is_exploration, pages
from course_lib.files.workspace import Workspace

STEP = 5  # minutes: nobody's pace is known more exactly


@dataclass(frozen=True)
class Standing:
    """How far a page is done, and which exercise is next: on this page or in a later lesson.

    `minutes` are what the page still takes, reading included; 0 where it is not known.
    """

    lesson: str
    passed: int
    exercises: int
    minutes: int
    following: Outline | None

    def __str__(self) -> str:
        minutes = f", about {self.minutes} minutes left" if self.minutes else ""
        kind = "Exploration" if is_exploration(self.lesson) else "Lesson"
        done = f"{kind} {self.lesson}: {self.passed} of {self.exercises} exercises{minutes}."
        if not self.following:
            return f"{done} You have passed every exercise of the course."
        other = self.following.lesson != self.lesson
        where = f" of {self.following.page}" if other else ""
        return f"{done} Next: `{self.following.id}`{where} ({self.following.effort})."


def standing(exercise_id: str, has_passed: bool) -> Standing:
    """Return where the learner is after a check of an exercise, which may not be recorded yet.

    Next is the first exercise from here on that has not passed, in the order of the notebooks;
    behind the last one, it is the first of the course. Explorations come after all lessons, except
    for the one that the learner is in.
    """
    workspace, every = Workspace.find(), outlines()
    passed = {x.id for x in every if workspace and workspace.record(x.id).passed}
    if has_passed:
        passed.add(exercise_id)
    place = next(n for n, x in enumerate(every) if x.id == exercise_id)
    lesson = every[place].lesson
    ahead = [x for x in every[place:] + every[:place] if x.id not in passed]
    ahead.sort(key=lambda x: x.lesson != lesson and is_exploration(x.lesson))
    own = [x for x in every if x.lesson == lesson]
    done = sum(x.id in passed for x in own)
    return Standing(lesson, done, len(own), _minutes(lesson, own, passed), next(iter(ahead), None))


def _minutes(number: str, own: list[Outline], passed: set[str]) -> int:
    """Estimate what is left of a page: exercises, and the page behind the last pass.

    Its reading is shared out by the length of the text.
    """
    page = next((x for x in pages() if x.number == number), None)
    if not page or not page.file:
        return 0
    text = page.file.read_text("utf8")
    places = [text.find(f"\n# exercise: {x.id}\n") for x in own if x.id in passed]
    unread = 1 - max([0, *places]) / len(text)
    reading = page.minutes - sum(x.minutes for x in own)
    left = reading * unread + sum(x.minutes for x in own if x.id not in passed)
    return max(STEP, STEP * round(left / STEP))
