"""What a person marks: answers in words by a rubric, other points for an answer, extra points.

Each question of the rubric is an exercise `by_hand/NAME`, each of its criteria a property. A run
writes a table with empty cells to fill in, and the next run reads it. There, a row of an exercise
without a criterion replaces the points of that answer, and a row without an exercise gives extra
points, which no lateness lessens.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from course_lib.grading.gradebooks.template import Template, name_key
from course_lib.grading.marks.entries import plain, rounded
from course_lib.grading.marks.schema import (
    BY_HAND,
    EXTRA,
    Entry,
    ExerciseResult,
    PropertyResult,
    Results,
)
from course_lib.grading.marks.written_answers import NAME
from course_lib.grading.reports.shared.table import harmless, table

COLUMNS = ["student", "name", "exercise", "criterion", "points", "of", "comment", "answer"]


class Criterion(NamedTuple):
    """What an answer in words is to say, and what that is worth."""

    exercise: str
    sentence: str
    points: float


class Mark(NamedTuple):
    """A row that somebody has filled in."""

    student: str
    exercise: str
    criterion: str
    points: float | None
    comment: str

    def place(self) -> tuple[str, str, str]:
        """Return what it is a mark for; whatever program has written the student's name."""
        return name_key(self.student), self.exercise, self.criterion


@dataclass(frozen=True)
class ByHand:
    """The rubric, and the marks that there are by now."""

    rubric: list[Criterion] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @property
    def most(self) -> float:
        """The points of all questions."""
        return sum(x.points for x in self.rubric)

    def exercises(self, student: str, entry: Entry) -> dict[str, ExerciseResult]:
        """Return the exercises of a graded notebook, with those that a person marks."""
        own = [mark for mark in self.marks if name_key(mark.student) == name_key(student)]
        words, results = entry.get("words", {}), dict(entry["exercises"])
        for exercise in dict.fromkeys(x.exercise for x in self.rubric):
            criteria = [x for x in self.rubric if x.exercise == exercise]
            answer = words.get(exercise.removeprefix(BY_HAND), "")
            marks = {x.criterion: x for x in own if x.exercise == exercise}
            results[exercise] = _in_words(criteria, marks, bool(answer))
        for mark in own:
            if mark.exercise in results and not mark.criterion:
                results[mark.exercise] = _replaced(results[mark.exercise], mark)
        extra = [mark for mark in own if not mark.exercise]
        if extra:
            results[EXTRA] = {
                "status": "marked",
                "points": rounded(sum(x.points or 0 for x in extra)),
                "max_points": 0,
                "message": plain(" ".join(x.comment for x in extra)),
            }
        return results

    def table(self, results: Results) -> str:
        """Write the table to fill in: the rows that were filled in, and those that were not."""
        marks = {mark.place(): mark for mark in self.marks}
        rows = []
        for submission in results["submissions"]:
            if submission["status"] != "graded":
                continue
            student, name = name_key(submission["student"]), submission.get("name", "")
            own = [(x.exercise, x.sentence) for x in self.rubric]
            own += [x[1:3] for x in marks if x[0] == student and x[1:3] not in own]
            worth = {(x.exercise, x.sentence): rounded(x.points) for x in self.rubric}
            for key in own:
                mark = marks.pop((student, *key), None)
                answer = submission.get("words", {}).get(key[0].removeprefix(BY_HAND), "")
                points = "" if mark is None or mark.points is None else str(rounded(mark.points))
                comment = mark.comment if mark else ""
                of = str(worth.get(key, ""))
                rows.append([submission["student"], name, *key, points, of, comment, answer])
        return "\ufeff" + table([COLUMNS, *rows])

    def without_place(self, results: Results) -> list[Mark]:
        """List the marks of students, exercises or criteria that are not in the results."""
        places = set()
        for submission in results["submissions"]:
            if submission["status"] == "graded":
                student = name_key(submission["student"])
                places.add((student, "", ""))
                places |= {(student, name, "") for name in submission["exercises"]}
                places |= {(student, x.exercise, x.sentence) for x in self.rubric}
        return [mark for mark in self.marks if mark.place() not in places]


def read_rubric(text: str) -> list[Criterion]:
    """Read the columns question, points, criterion. Raises ValueError with one sentence."""
    rows = _rows(text, {"question", "points", "criterion"})
    criteria = []
    for line, row in rows:
        points = _number(row["points"], line)
        if not NAME.fullmatch(row["question"]) or not points or points < 0:
            raise ValueError(
                f"line {line}: a question is a name of letters and digits, and has points."
            )
        sentence = row["criterion"] or "the answer is right"
        criteria.append(Criterion(BY_HAND + row["question"], sentence, points))
    return criteria


def read_marks(text: str) -> list[Mark]:
    """Read the table that a run has written; rows that are not filled in are left out.

    Raises ValueError with one sentence.
    """
    marks = []
    for line, row in _rows(text, set(COLUMNS[:1] + COLUMNS[2:5])):
        mark = Mark(
            row["student"],
            row["exercise"],
            row["criterion"],
            _number(row["points"], line),
            row.get("comment", ""),
        )
        if mark.points is not None or mark.comment:
            marks.append(mark)
    return marks


def _in_words(criteria: list[Criterion], marks: dict[str, Mark], answered: bool) -> ExerciseResult:
    properties: list[PropertyResult] = []
    won = 0.0
    for criterion in criteria:
        mark = marks.get(criterion.sentence)
        # what nobody has looked at yet is the marker's alone: it says what to write
        if mark and mark.points is not None:
            held, worth = mark.points >= criterion.points, rounded(criterion.points)
            properties.append({"sentence": criterion.sentence, "points": worth, "held": held})
            won += mark.points
    if answered and len(properties) < len(criteria):
        status, said = "to be marked", "Not marked yet."
    else:
        status, said = ("marked", "") if properties else ("not attempted", "Nothing is written.")
    comments = " ".join(x.comment for x in marks.values() if x.comment)
    result: ExerciseResult = {
        "status": status,
        "points": rounded(won),
        "max_points": rounded(sum(x.points for x in criteria)),
        "message": plain(comments) or said,
    }
    return {**result, "properties": properties} if properties else result


def _replaced(result: ExerciseResult, mark: Mark) -> ExerciseResult:
    """Put a person's points and comment into a result."""
    said = [f"By hand: {mark.comment}"] if mark.comment else []
    replaced = result.copy()
    replaced["message"] = plain(" ".join([result["message"], *said]))
    if mark.points is not None:
        replaced["points"], replaced["status"] = rounded(mark.points), "marked"
    return replaced


def _rows(text: str, needed: set[str]) -> Iterable[tuple[int, dict[str, str]]]:
    table = Template(text)
    head = table.head
    if not needed <= set(head):
        raise ValueError(f"it needs the columns {', '.join(sorted(needed))} in its first row.")
    for row in range(1, len(table.rows)):
        cells = {name: _meant(table.read(row, place)) for place, name in enumerate(head)}
        if any(cells.values()):
            yield row + 1, cells


def _meant(written: str) -> str:
    """Return what a cell says without the apostrophe that keeps it from being a formula."""
    meant = written.removeprefix("'")
    return meant if harmless(meant) == written else written


def _number(written: str, line: int) -> float | None:
    if not written:
        return None
    try:
        number = float(written.replace(",", "."))
        if abs(number) < 1e6:
            return number
    except ValueError:
        pass
    raise ValueError(f"line {line}: {written} is no number of points.")
