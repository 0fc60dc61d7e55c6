"""What a new run changes, after an exercise was mended or on an appeal: whose points, and where."""

import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.grading.gradebooks.template import name_key
from course_lib.grading.marks.schema import ExerciseResult, Results, SubmissionResult
from course_lib.grading.reports.shared import statistics
from course_lib.grading.reports.shared.pages import render
from course_lib.grading.reports.shared.text import count, number, one_line, who

SCHEMA = Path(__file__).parents[1] / "marks" / "results.schema.json"
SHOWN = 20  # lines in the terminal; the page has them all


@dataclass(frozen=True)
class Change:
    """One submission then and now, with the exercises that differ; None where it was not there."""

    then: SubmissionResult | None
    now: SubmissionResult | None
    exercises: list[tuple[str, ExerciseResult | None, ExerciseResult | None]]

    @property
    def submission(self) -> SubmissionResult:
        """The submission as it is now, or else as it was."""
        submission = self.now or self.then
        assert submission, "a change is of something"
        return submission

    def sentence(self) -> str:
        """Say it on one line: `Ada (ada_101): 9 → 11; self_attention/project 2 → 4`."""
        parts = [" → ".join(_of(_score, self.then, self.now))]
        parts += [f"{name} {' → '.join(_of(_points, a, b))}" for name, a, b in self.exercises]
        return one_line(f"{who(self.submission)}: {'; '.join([*parts, *self.lateness()])}")

    def lateness(self) -> list[str]:
        """Say what is late then or now, where that has changed."""
        then, now = (
            x and (x.get("lateness") or ("late" if x["late"] else "in time"))
            for x in (self.then, self.now)
        )
        return [f"then: {then}", f"now: {now}"] if then and now and then != now else []


def read(path: Path) -> Results:
    """Read `results.json`, or that of a folder. Raises ValueError with one sentence, OSError."""
    import jsonschema  # takes a second, and few grade again

    path = path / "results.json" if path.is_dir() else path
    try:
        results = json.loads(path.read_text("utf8"))
        jsonschema.validate(results, json.loads(SCHEMA.read_text("utf8")))
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is not JSON.") from None
    except jsonschema.ValidationError as error:
        raise ValueError(
            f"{path} holds no results of `course grade`: {error.json_path} is not as "
            "results.schema.json says."
        ) from None
    return results


def changes(then: Results, now: Results) -> list[Change]:
    """List the submissions whose score, status, or points of an exercise differ."""
    before, after = ({_key(x): x for x in results["submissions"]} for results in (then, now))
    found = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        exercises = _exercises(old, new)
        if exercises or _score(old) != _score(new):
            found.append(Change(old, new, exercises))
    return found


def sentences(found: list[Change]) -> list[str]:
    """Say what changed, a submission a line."""
    head = f"{count(len(found), 'submission')} changed."
    more = [f"... and {len(found) - SHOWN} more."] if len(found) > SHOWN else []
    return [head, *(change.sentence() for change in found[:SHOWN]), *more]


def page(found: list[Change], then: Results, now: Results) -> str:
    """Return the page that shows each change."""
    return render(
        "changes.html",
        results=now,
        then=then,
        changes=found,
        medians=[statistics.median_share(results) for results in (then, now)],
        score=_score,
    )


def _key(submission: SubmissionResult) -> tuple[str, str]:
    """Tell one submission from the others, whatever program has written its names."""
    notebook = unicodedata.normalize("NFC", submission["notebook"])
    return name_key(submission["student"]), notebook


def _exercises(
    then: SubmissionResult | None, now: SubmissionResult | None
) -> list[tuple[str, ExerciseResult | None, ExerciseResult | None]]:
    old, new = (x["exercises"] if x else {} for x in (then, now))
    pairs = [(name, old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])]
    return [(name, a, b) for name, a, b in pairs if _verdict(a) != _verdict(b)]


def _verdict(result: ExerciseResult | None) -> tuple | None:
    return result and (result["status"], result["points"], result["max_points"])


def _score(submission: SubmissionResult | None) -> str:
    if submission is None:
        return "not there"
    graded = submission["status"] == "graded"
    return number(submission["score"]) if graded else submission["status"]


def _of(write: Callable, then: Any, now: Any) -> list[str]:
    """Write what was won, and of how much where that is what has changed."""
    most = [
        number(x["max_score" if "max_score" in x else "max_points"]) if x else ""
        for x in (then, now)
    ]
    more = [f" of {x}" if all(most) and most[0] != most[1] else "" for x in most]
    return [write(x) + of for x, of in zip((then, now), more, strict=True)]


def _points(result: ExerciseResult | None) -> str:
    return number(result["points"]) if result else "–"
