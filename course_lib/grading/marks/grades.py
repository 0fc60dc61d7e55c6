"""From entries to results: scores, names, and which of a student's notebooks counts."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from course_lib.checking.catalogue import ids, outline
from course_lib.grading.judging.rules import Rules
from course_lib.grading.marks.by_hand import ByHand
from course_lib.grading.marks.entries import plain, rounded, unreadable
from course_lib.grading.marks.schema import EXTRA, Entry, Results, SubmissionResult
from course_lib.grading.submissions.files import SubmittedFile
from course_lib.grading.submissions.lateness import Lateness, moment
from course_lib.grading.submissions.roster import Roster


@dataclass(frozen=True)
class Policy:
    """What makes grades of verdicts: deadlines, who is in the class, and what a person marks."""

    lateness: Lateness = field(default_factory=Lateness)
    roster: Roster = field(default_factory=Roster)
    by_hand: ByHand = field(default_factory=ByHand)


def results(rules: Rules, judged: list[tuple[SubmittedFile, Entry]], policy: Policy) -> Results:
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
        submissions.append(_submission(submitted, entry, policy))
    for person in policy.roster.without((x.student, x.number) for x, _ in judged):
        nobody = SubmittedFile(person.id, "", Path())
        entry = unreadable("Nothing was handed in.", status="missing")
        submissions.append(_submission(nobody, entry, policy))
    submissions.sort(key=lambda x: (x["student"], x["notebook"]))
    _say_what_could_be_won(rules, submissions, policy.by_hand.most)
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


def _age(submitted: SubmittedFile) -> tuple[float, str]:
    handed_in = moment(submitted.time).timestamp() if submitted.time else -math.inf
    return handed_in, submitted.notebook


def _submission(submitted: SubmittedFile, entry: Entry, policy: Policy) -> SubmissionResult:
    percent, exercises = policy.lateness.percent(submitted), entry["exercises"]
    if entry["status"] == "graded":
        exercises = policy.by_hand.exercises(_text(submitted.student), entry)
    extra = exercises[EXTRA]["points"] if EXTRA in exercises else 0
    score = sum(x["points"] for x in exercises.values()) - extra
    result: SubmissionResult = {
        "student": _text(submitted.student),
        "notebook": _text(submitted.notebook),
        "lesson": entry["lesson"],
        "status": entry["status"],
        "message": entry["message"],
        "late": percent is not None,
        "score": rounded(max(score * (1 - (percent or 0) / 100) + extra, 0)),
        "max_score": rounded(sum(x["max_points"] for x in exercises.values())),
        "exercises": exercises,
    }
    if "words" in entry:
        result["words"] = entry["words"]
    if submitted.number:
        result["number"] = submitted.number
    if person := policy.roster.find(submitted.student, submitted.number):
        result["name"], result["email"] = person.name, person.email
    return result


def _say_what_could_be_won(
    rules: Rules, submissions: list[SubmissionResult], by_hand: float
) -> None:
    """Give what was not graded the points that it could have won, where it is known."""
    lessons = {x["lesson"] for x in submissions if x["lesson"]}
    asked = rules.exercises
    if not asked and len(lessons) == 1:
        asked = [x for x in ids() if outline(x).lesson in lessons]
    points = [rules.points.get(x, outline(x).points) for x in asked]
    most = rounded(sum(points) + by_hand)
    for submission in submissions:
        if submission["status"] != "graded":
            submission["max_score"] = most


def _text(name: str) -> str:
    """Write a file's name as text, also one that is not UTF-8."""
    return name.encode("utf8", "backslashreplace").decode()
