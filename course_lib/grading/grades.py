"""From entries to results: scores, lateness, and which of a student's notebooks counts."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from course_lib.checking.catalogue import ids, load
from course_lib.checking.verdict import max_points
from course_lib.grading.judge import Rules, plain, rounded
from course_lib.grading.schema import Entry, Results, SubmissionResult
from course_lib.grading.submissions import SubmittedFile


@dataclass(frozen=True)
class Lateness:
    """What is handed in after `due`, which has a zone, loses so many percent of its score."""

    due: datetime | None = None
    percent: float = 0.0

    def is_late(self, submitted: SubmittedFile) -> bool:
        """Tell whether Canvas says so, or else the time of the file."""
        after = bool(self.due and submitted.time and submitted.time > self.due)
        return submitted.late or after


def results(rules: Rules, judged: list[tuple[SubmittedFile, Entry]], lateness: Lateness) -> Results:
    """Return what `results.json` says (see results.schema.json), sorted, the same for each run."""
    counting = _counting(judged)
    submissions = []
    for submitted, entry in judged:
        if entry["status"] == "graded" and submitted not in counting.values():
            other = counting[submitted.student, entry["lesson"]].notebook
            sentence = f"A later notebook of the same lesson counts: {other}."
            entry = Entry(
                lesson=entry["lesson"], status="superseded", message=plain(sentence), exercises={}
            )
        submissions.append(_submission(submitted, entry, lateness))
    submissions.sort(key=lambda x: (x["student"], x["notebook"]))
    _say_what_could_be_won(rules, submissions)
    return {"isolation": rules.level, "seed": rules.seed, "submissions": submissions}


def as_json(results: Results) -> str:
    """Write results as text."""
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


def _counting(
    judged: list[tuple[SubmittedFile, Entry]],
) -> dict[tuple[str, str | None], SubmittedFile]:
    """Pick the notebook that counts for each student and lesson: the latest, then by name."""
    counting: dict[tuple[str, str | None], SubmittedFile] = {}
    for submitted, entry in judged:
        key = (submitted.student, entry["lesson"])
        if entry["status"] == "graded":
            counting[key] = max(counting.get(key, submitted), submitted, key=_age)
    return counting


def _age(submitted: SubmittedFile) -> tuple[datetime, str]:
    return submitted.time or datetime.min.replace(tzinfo=UTC), submitted.notebook


def _submission(submitted: SubmittedFile, entry: Entry, lateness: Lateness) -> SubmissionResult:
    late = lateness.is_late(submitted)
    score = sum(x["points"] for x in entry["exercises"].values())
    if late:
        score *= 1 - lateness.percent / 100
    return {
        "student": _text(submitted.student),
        "notebook": _text(submitted.notebook),
        "lesson": entry["lesson"],
        "status": entry["status"],
        "message": entry["message"],
        "late": late,
        "score": rounded(score),
        "max_score": rounded(sum(x["max_points"] for x in entry["exercises"].values())),
        "exercises": entry["exercises"],
    }


def _say_what_could_be_won(rules: Rules, submissions: list[SubmissionResult]) -> None:
    """Give what was not graded the points that it could have won, where it is known."""
    lessons = {x["lesson"] for x in submissions if x["lesson"]}
    asked = rules.exercises
    if not asked and len(lessons) == 1:
        asked = [x for x in ids() if load(x).lesson in lessons]
    points = [rules.points.get(x, max_points(load(x))) for x in asked]
    most = rounded(sum(points))
    for submission in submissions:
        if submission["status"] != "graded":
            submission["max_score"] = most


def _text(name: str) -> str:
    """Write a file's name as text, also one that is not UTF-8."""
    return name.encode("utf8", "backslashreplace").decode()
