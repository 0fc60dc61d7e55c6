"""What the results say of the class: how it did, what was hardest, which mistakes it made."""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median
from typing import NamedTuple

from course_lib.checking import catalogue
from course_lib.files.course_map import pages
from course_lib.grading.marks.schema import (
    BY_HAND,
    EXTRA,
    ExerciseResult,
    Flag,
    Results,
    SubmissionResult,
)

STATUSES = (
    "passed", "known mistake", "wrong", "error", "forbidden", "not attempted",
    "marked", "to be marked",
)  # fmt: skip
BARS = 10  # of the distribution, each as wide as a tenth of the points


@dataclass(frozen=True)
class ExerciseStatistics:
    """How the class did on one exercise."""

    exercise_id: str
    answers: int
    statuses: dict[str, int]
    mean_points: float
    max_points: float

    @property
    def passed(self) -> float:
        """Share of the notebooks with this exercise in which it passed."""
        return self.statuses["passed"] / self.answers


class KnownMistake(NamedTuple):
    """A mistake, as an answer to an exercise, and the submissions that made it."""

    exercise_id: str
    message: str
    submissions: list[SubmissionResult]


def graded(results: Results) -> list[SubmissionResult]:
    """List the submissions that were graded."""
    return [x for x in results["submissions"] if x["status"] == "graded"]


def to_be_marked(results: Results) -> int:
    """Count the answers that a person has still to mark."""
    verdicts = [x for row in results["submissions"] for x in row["exercises"].values()]
    return sum(x["status"] == "to be marked" for x in verdicts)


def unmarked(results: Results) -> dict[str, int]:
    """Count the answers to each question in words that no rubric has."""
    found: Counter[str] = Counter()
    for row in graded(results):
        for question, text in row.get("words", {}).items():
            if BY_HAND + question not in row["exercises"]:
                found[question] += bool(text)
    return found


def most(results: Results) -> float:
    """Return the most points that a student's notebooks, of one lesson or more, can win."""
    own: dict[str, float] = {}
    for row in graded(results):
        own[row["student"]] = own.get(row["student"], 0) + row["max_score"]
    return max(own.values(), default=0)


def exercises(results: Results) -> list[ExerciseStatistics]:
    """List the exercises: first the one that passed in the smallest share of the notebooks."""
    verdicts: dict[str, list[ExerciseResult]] = {}
    for submission in graded(results):
        for exercise_id in submission["exercises"].keys() - {EXTRA}:
            verdict = submission["exercises"][exercise_id]
            verdicts.setdefault(exercise_id, []).append(verdict)
    exercises = []
    for exercise_id, own in verdicts.items():
        counts = Counter(x["status"] for x in own)
        statuses = {status: counts[status] for status in STATUSES}
        means = fmean(x["points"] for x in own), fmean(x["max_points"] for x in own)
        exercises.append(ExerciseStatistics(exercise_id, len(own), statuses, *means))
    return sorted(
        exercises, key=lambda x: (x.passed, x.mean_points / (x.max_points or 1), x.exercise_id)
    )


def known_mistakes(results: Results) -> list[KnownMistake]:
    """List the known mistakes, the commonest first."""
    made: dict[tuple[str, str], list[SubmissionResult]] = {}
    for submission in graded(results):
        for exercise_id, verdict in submission["exercises"].items():
            if verdict["status"] == "known mistake":
                made.setdefault((exercise_id, verdict["message"]), []).append(submission)
    mistakes = [KnownMistake(*key, submissions) for key, submissions in made.items()]
    return sorted(mistakes, key=lambda x: (-len(x.submissions), x.exercise_id, x.message))


def flagged(results: Results) -> list[tuple[SubmissionResult, str, list[Flag]]]:
    """List the answers with something unusual: the submission, the exercise, and what was seen."""
    return [
        (submission, exercise_id, flags)
        for submission in graded(results)
        for exercise_id, verdict in submission["exercises"].items()
        if (flags := verdict.get("flags"))
    ]


def distribution(results: Results) -> list[int]:
    """Count the graded notebooks by their share of the points, in tenths; the last has all."""
    bars = [0] * BARS
    for score, most in _scores(results):
        bars[min(int(score * BARS / most), BARS - 1)] += 1
    return bars


def median_share(results: Results) -> float | None:
    """Return the median share of the points; None where nothing could be won."""
    shares = [score / most for score, most in _scores(results)]
    return median(shares) if shares else None


def exercise_title(exercise_id: str) -> str:
    """Return the title of an exercise, or its id where it is not installed here."""
    if exercise_id == EXTRA:
        return "Extra points"
    if exercise_id.startswith(BY_HAND):
        return f"In words: {exercise_id.removeprefix(BY_HAND).replace('_', ' ')}"
    try:
        return catalogue.outline(exercise_id).title
    except catalogue.UnknownExercise:
        return exercise_id


def lesson_title(number: str | None) -> str:
    """Return a page's number and title: `03 Self-attention`; empty where there is none."""
    return f"{number} {_lesson_titles().get(number, '')}".strip() if number else ""


@cache
def _lesson_titles() -> dict[str, str]:
    return {
        page.number: f"{page.title} (an exploration)" if page.is_exploration else page.title
        for page in pages()
    }


def _scores(results: Results) -> list[tuple[float, float]]:
    """List what each graded notebook has won, and of how many points that are not open."""
    pairs = [(x["score"], x["max_score"] - _open(x)) for x in graded(results)]
    return [(score, most) for score, most in pairs if most > 0]


def _open(submission: SubmissionResult) -> float:
    """Count the points that a person has still to give, or not."""
    waiting = [x for x in submission["exercises"].values() if x["status"] == "to be marked"]
    marked = [y["points"] for x in waiting for y in x.get("properties", [])]
    return sum(x["max_points"] for x in waiting) - sum(marked)
