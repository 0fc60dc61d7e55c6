"""From entries to results: scores, lateness, and which of a student's notebooks counts."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from course_lib.checking.catalogue import ids, load
from course_lib.checking.verdict import max_points
from course_lib.grading.judge import Rules, plain, rounded
from course_lib.grading.submissions import Submitted

Entry = dict[str, Any]


@dataclass(frozen=True)
class Lateness:
    """What is handed in after `due` loses so many percent of its score."""

    due: datetime | None = None
    percent: float = 0.0

    def is_late(self, submitted: Submitted) -> bool:
        """Tell whether Canvas says so, or else the time of the file."""
        after = bool(self.due and submitted.time and submitted.time > self.due)
        return submitted.late or after


def results(
    rules: Rules, judged: list[tuple[Submitted, Entry]], lateness: Lateness
) -> dict[str, Any]:
    """Return what `results.json` says (see results.schema.json), sorted, the same for each run."""
    counting = _counting(judged)
    submissions = []
    for submitted, entry in judged:
        if entry["status"] == "graded" and submitted not in counting.values():
            other = counting[submitted.student, entry["lesson"]].notebook
            sentence = f"A later notebook of the same lesson counts: {other}."
            entry = entry | {"status": "superseded", "message": plain(sentence), "exercises": {}}
        submissions.append(_submission(submitted, entry, lateness))
    submissions.sort(key=lambda x: (x["student"], x["notebook"]))
    _say_what_could_be_won(rules, submissions)
    return {"isolation": rules.level, "seed": rules.seed, "submissions": submissions}


def as_json(results: dict[str, Any]) -> str:
    """Write results as text."""
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


def _counting(judged: list[tuple[Submitted, Entry]]) -> dict[tuple[str, str], Submitted]:
    """Pick the notebook that counts for each student and lesson: the latest, then by name."""
    found: dict[tuple[str, str], Submitted] = {}
    for submitted, entry in judged:
        key = (submitted.student, entry["lesson"])
        if entry["status"] == "graded":
            found[key] = max(found.get(key, submitted), submitted, key=_age)
    return found


def _age(submitted: Submitted) -> tuple[datetime, str]:
    return submitted.time or datetime.min, submitted.notebook


def _submission(submitted: Submitted, entry: Entry, lateness: Lateness) -> Entry:
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


def _say_what_could_be_won(rules: Rules, submissions: list[Entry]) -> None:
    """Give what was not graded the points that it could have won, where it is known."""
    lessons = {x["lesson"] for x in submissions if x["lesson"]}
    asked = rules.exercises
    if not asked and len(lessons) == 1:
        asked = [id for id in ids() if load(id).lesson in lessons]
    most = rounded(sum(rules.points.get(id, max_points(load(id))) for id in asked))
    for submission in submissions:
        if submission["status"] != "graded":
            submission["max_score"] = most


def _text(name: str) -> str:
    """Write a file's name as text, also one that is not UTF-8."""
    return name.encode("utf8", "backslashreplace").decode()
