"""From entries to results: scores, names, and which of a student's notebooks counts."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from course_lib.checking.catalogue import ids, outline
from course_lib.grading.judging.rules import Rules
from course_lib.grading.marks.by_hand import ByHand
from course_lib.grading.marks.entries import plain, rounded, unreadable
from course_lib.grading.marks.exam_key import Key
from course_lib.grading.marks.schema import EXTRA, Entry, Missing, Option, Results, SubmissionResult
from course_lib.grading.submissions.files import SubmittedFile
from course_lib.grading.submissions.lateness import Lateness
from course_lib.grading.submissions.roster import Roster


@dataclass(frozen=True)
class Policy:
    """What makes grades of verdicts: deadlines, who is in the class, and what a person marks.

    `exam` is the key to pages that each student has of his own; `kept` are rows of earlier
    results, of students who are not graded now; `missing` says what work that was not graded is in
    gradebooks: an empty cell or a zero. `options` are those of the command that decide grades, and
    `gradebooks` says how many points the assignment has in each.
    """

    lateness: Lateness = field(default_factory=Lateness)
    roster: Roster = field(default_factory=Roster)
    by_hand: ByHand = field(default_factory=ByHand)
    exam: Key = field(default_factory=Key)
    kept: list[SubmissionResult] = field(default_factory=list)
    missing: Missing = "empty"
    options: dict[str, Option] | None = None
    gradebooks: dict[str, float] = field(default_factory=dict)


def results(rules: Rules, judged: list[tuple[SubmittedFile, Entry]], policy: Policy) -> Results:
    """Return what `results.json` says (see results.schema.json), sorted, the same for each run."""
    said = _said_of_several(judged, policy)
    submissions = list(policy.kept)
    for submitted, entry in judged:
        if submitted in said:
            counts, words = said[submitted]
            entry = _with(entry, words) if counts else _superseded(entry, words)
        submissions.append(_submission(submitted, entry, policy))
    here = [*((x.student, x.number) for x, _ in judged)]
    here += ((x["student"], x.get("number", "")) for x in policy.kept)
    for person in policy.roster.without(here):
        nobody = SubmittedFile(person.id, "", Path())
        entry = unreadable("Nothing was handed in.", status="missing")
        submissions.append(_submission(nobody, entry, policy))
    submissions.sort(key=lambda x: (x["student"], x["notebook"]))
    _say_what_could_be_won(rules, submissions, policy.by_hand.most)
    found: Results = {"isolation": rules.level, "seed": rules.seed, "submissions": submissions}
    if policy.missing != "empty":
        found["missing"] = policy.missing
    if policy.options is not None:
        found["options"] = policy.options
    if policy.gradebooks:
        found["gradebooks"] = policy.gradebooks
    return found


def as_json(results: Results) -> str:
    """Write results as text."""
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


def _said_of_several(
    judged: list[tuple[SubmittedFile, Entry]], policy: Policy
) -> dict[SubmittedFile, tuple[bool, str]]:
    """Say of a student's several notebooks of one lesson whether each counts, and why.

    The latest does; where nothing says which it is, that with the most points.
    """
    several: dict[tuple[str, str | None], list[tuple[SubmittedFile, Entry]]] = defaultdict(list)
    for submitted, entry in judged:
        if entry["status"] == "graded":
            several[submitted.student, entry["lesson"]].append((submitted, entry))
    return {x: said for own in several.values() if own[1:] for x, said in _of_several(own, policy)}


def _of_several(
    own: list[tuple[SubmittedFile, Entry]], policy: Policy
) -> Iterator[tuple[SubmittedFile, tuple[bool, str]]]:
    times = {x: policy.lateness.time(x) for x, _ in own}
    known = [time for time in times.values() if time]
    latest = [x for x in own if len(known) < len(own) or times[x[0]] == max(known)]
    one, best = max(latest, key=lambda x: (_points(x[1]), x[0].notebook))
    for submitted, entry in own:
        if (submitted, entry) not in latest:
            yield submitted, (False, f"A later notebook of the same lesson counts: {one.notebook}.")
        elif latest[1:] and submitted == one:
            others = ", ".join(x.notebook for x, _ in latest if x != one)
            said = "Nothing says which of several notebooks is the latest. This one counts"
            yield submitted, (True, f"{said}: none of the others ({others}) has more points.")
        elif submitted != one:
            more = "has more points and" if _points(best) > _points(entry) else "has as many and"
            said = "Nothing says which of several notebooks is the latest:"
            yield submitted, (False, f"{said} {one.notebook} {more} counts.")


def _with(entry: Entry, words: str) -> Entry:
    entry = entry.copy()
    entry["message"] = plain(f"{words} {entry['message']}")
    return entry


def _superseded(entry: Entry, words: str) -> Entry:
    return Entry(lesson=entry["lesson"], status="superseded", message=plain(words), exercises={})


def _points(entry: Entry) -> float:
    return sum(x["points"] for x in entry["exercises"].values())


def _submission(submitted: SubmittedFile, entry: Entry, policy: Policy) -> SubmissionResult:
    percent, exercises = policy.lateness.percent(submitted), entry["exercises"]
    if entry["status"] == "graded":
        own = policy.exam.marked(submitted.student, submitted.number, exercises)
        entry = Entry({**entry, "exercises": own})
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
    if percent is not None:
        result["lateness"] = policy.lateness.sentence(submitted)
    if "words" in entry:
        result["words"] = entry["words"]
    if "python" in entry:
        result["python"] = entry["python"]
    if submitted.number:
        result["number"] = submitted.number
    if submitted.platform:
        result["platform"] = submitted.platform
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
