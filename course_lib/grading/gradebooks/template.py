"""A gradebook that the instructor exported: some cells are filled, all else keeps its bytes."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.reports.shared.statistics import exercise_title, graded, most
from course_lib.grading.reports.shared.text import number, one_line

# of a gradebook, by the row: what a student is called there, and by which words they are found
Rows = dict[int, tuple[str, set[str]]]


@dataclass
class FilledTemplate:
    """Grades in a gradebook of Canvas or Moodle, and what the instructor should know of it."""

    gradebook: str
    text: str = ""
    points: float = 0
    students_without_row: list[str] = field(default_factory=list)
    rows_without_grade: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """Say what is to be known, a sentence a line."""
        sentences = [
            *(f"{student} has no row in it." for student in self.students_without_row),
            *(f"{row} has no grade." for row in self.rows_without_grade),
            *self.remarks,
        ]
        return sentences or ["Every grade has its row, and every row its grade."]


class Template:
    """A CSV file as rows of cells in the file's own writing. Raises ValueError where it is none."""

    def __init__(self, text: str):
        first = text.split("\n", 1)[0]
        self.delimiter = max(",;\t", key=first.count)
        # a quoted cell or a plain one, and what ends it
        cell = re.compile(
            rf'("(?:[^"]|"")*"|[^"{self.delimiter}\r\n][^{self.delimiter}\r\n]*|)'
            rf"({self.delimiter}|\r\n|\r|\n|\Z)"
        )
        self.mark = "\ufeff" if text.startswith("\ufeff") else ""
        self.rows: list[list[str]] = [[]]
        self.ends: list[str] = []
        place = len(self.mark)
        while place < len(text) or self.rows[-1]:
            part = cell.match(text, place)
            if not part:
                raise ValueError(f"line {text.count(chr(10), 0, place) + 1} of it is not CSV.")
            self.rows[-1].append(part[1])
            place = part.end()
            if part[2] != self.delimiter:
                self.ends.append(part[2])
                self.rows.append([])
            if not part[2]:
                break
        self.rows.pop()
        written = [self.read(0, i) for i in range(len(self.rows[0]))] if self.rows else []
        self.names = written  # of the columns
        self.head = [name.lower() for name in written]  # the same, as they are looked for

    def read(self, row: int, column: int) -> str:
        """Return what a cell says, without quotes and the space around it."""
        written = self.rows[row][column] if column < len(self.rows[row]) else ""
        if written.startswith('"'):
            written = written[1:-1].replace('""', '"')
        return written.strip()

    def write(self, row: int, column: int, value: str) -> None:
        """Put a value into a cell."""
        cells = self.rows[row]
        cells += [""] * (column + 1 - len(cells))
        special = any(sign in value for sign in f'"\r\n{self.delimiter}')
        cells[column] = '"{}"'.format(value.replace('"', '""')) if special else value

    def text(self) -> str:
        """Return the whole file."""
        rows = zip(self.rows, self.ends, strict=True)
        return self.mark + "".join(f"{self.delimiter.join(cells)}{end}" for cells, end in rows)


def grades(
    results: Results,
    rows: Rows,
    possible: float | None,
    scale: float | None,
    filled: FilledTemplate,
) -> Iterator[tuple[int, str, list[str]]]:
    """Yield a student's row, grade, and the reasons for it; remark on all that has no place.

    Notebooks of several lessons add up. All their points become those that are possible in the
    gradebook, or the `scale` that was asked for.
    """
    submissions: dict[str, list[SubmissionResult]] = defaultdict(list)
    for submission in graded(results):
        submissions[submission["student"]].append(submission)
    worth = _factor(most(results), possible, scale, filled)
    if results.get("missing") == "zero":
        nothing = [x for x in results["submissions"] if x["status"] in ("unreadable", "missing")]
        for submission in nothing:
            submissions.setdefault(submission["student"], [submission])
    for student, row in _match(rows, submissions, filled).items():
        own = submissions[student]
        yield row, number(worth * sum(x["score"] for x in own)), _feedback(own, worth)
    if filled.gradebook == "Canvas" and any(map(_lost, submissions.values())):
        filled.remarks.append("Late penalties are taken off: let Canvas take off no others.")


def _factor(
    total: float, possible: float | None, scale: float | None, filled: FilledTemplate
) -> float:
    """Return what scores are multiplied by to be a gradebook's, and remark on it.

    Raises ValueError where nobody says how many points there are.
    """
    gradebook, wanted = filled.gradebook, scale or possible
    if not wanted:
        raise ValueError(
            f"{gradebook} does not say how many points this assignment has: --scale does."
        )
    filled.points = wanted
    if scale and possible and scale != possible:
        filled.remarks.append(
            f"{gradebook} has {number(possible)} points for this assignment, and --scale says "
            f"{number(scale)}."
        )
    if not total or wanted == total:
        return 1.0
    filled.remarks.append(
        f"Scaled: {number(total)} points of these results are {number(wanted)} in {gradebook}."
    )
    return wanted / total


def positive(written: str) -> float | None:
    """Read a number of points, with a point or a comma; None where there is none."""
    try:
        return max(float(written.replace(",", ".")), 0) or None
    except ValueError:
        return None


def _lost(submissions: list[SubmissionResult]) -> float:
    """Return how many points were taken off for lateness."""
    late = [x for x in submissions if x["late"]]
    won = sum(x["points"] for one in late for x in one["exercises"].values())
    return max(won - sum(x["score"] for x in late), 0)


def _feedback(submissions: list[SubmissionResult], worth: float) -> list[str]:
    """Say on a few lines what a student's notebooks got, and what does not hold yet."""
    lines = [x["message"] for x in submissions if x["message"]]
    score, possible = (sum(x[key] for x in submissions) for key in ("score", "max_score"))
    total = f"{number(score)} of {number(possible)} points"
    if less := _lost(submissions):
        total = f"Handed in late: {number(score + less)} less {number(less)} is {total}"
    if worth != 1:
        total += f"; here that is {number(worth * score)} of {number(worth * possible)}"
    lines += [x["lateness"] for x in submissions if "lateness" in x]
    if less or worth != 1:
        lines.append(f"{total}.")
    for submission in submissions:
        for exercise_id, verdict in submission["exercises"].items():
            points = f"{number(verdict['points'])} of {number(verdict['max_points'])} points"
            title = exercise_title(exercise_id)
            lines.append(f"{title}: {verdict['status']}, {points}. {verdict['message']}")
            properties = verdict.get("properties", [])
            for held, said in {False: "Does not hold yet", None: "Not tried"}.items():
                if found := [x["sentence"] for x in properties if x["held"] is held]:
                    lines.append(f"{said}: {'; '.join(found)}.")
    return [one_line(line) for line in lines]


def _match(
    rows: Rows, submissions: dict[str, list[SubmissionResult]], filled: FilledTemplate
) -> dict[str, int]:
    """Find the row of each student, and note who has none.

    Where a student fits several rows, or several students fit one row, nobody's grade is guessed.
    """
    keys = {row: words for row, (_, words) in rows.items()}
    labels = {row: label for row, (label, _) in rows.items()}
    fitting = {
        student: rows_of(student, own[0].get("number", ""), keys)
        for student, own in submissions.items()
    }
    claims = Counter(row for own in fitting.values() for row in own)
    row_of = {}
    for student, own in fitting.items():
        if not own:
            filled.students_without_row.append(one_line(student))
        elif len(own) > 1:
            filled.remarks.append(f"{one_line(student)} fits {len(own)} rows: none was filled.")
        elif claims[own[0]] > 1:
            label = one_line(labels[own[0]])
            filled.remarks.append(
                f"{one_line(student)} is not the only one who fits {label}: that cell is as it "
                "was. Hand one of them to the command under the name that the platform gave."
            )
        else:
            row_of[student] = own[0]
    left = rows.keys() - row_of.values()
    filled.rows_without_grade += [one_line(labels[row]) for row in rows if row in left]
    return row_of


def numbered(number: str) -> str:
    """Return the key of a student's number in Canvas or Moodle, which is like no other key."""
    return f"number\0{number.removeprefix('Participant').strip()}"


def rows_of(student: str, number: str, keys: dict[int, set[str]]) -> list[int]:
    """Find the rows that know a student: by the number that a platform gave, or as written."""
    wanted = name_key(numbered(number) if number else student)
    return [row for row in keys if wanted in map(name_key, keys[row])]


@cache
def name_key(name: str) -> str:
    """Return what is the same for all writings of a name, whatever program wrote it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold()).strip()
