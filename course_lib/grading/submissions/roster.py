"""Who is in the class: a table of ids, names, addresses and deadlines, in any order of columns.

A gradebook exported from Canvas or Moodle is one as well; Moodle's says when work was handed in, as
the column `handed in` of another table may. Whose file has a name that one of these
made is found by the number in it, everybody else by an id, a name or an address.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from course_lib.grading.gradebooks.template import Template, numbered, rows_of
from course_lib.grading.submissions.times import deadline, parse_time

IDS = ("id", "identifier", "sis login id", "sis user id", "id number", "username")
NAMES = ("name", "student", "full name")
ADDRESSES = ("email", "email address")
HANDED_IN, MOODLES_TIME = "handed in", "last modified (submission)"
NOBODY = ("Student, Test", "Test Student")  # whom Canvas enrols in every course


@dataclass(frozen=True)
class Person:
    """One student of the class; `due` is a deadline of their own, `handed_in` when work came."""

    id: str
    name: str = ""
    email: str = ""
    due: datetime | None = None
    handed_in: datetime | None = None


@dataclass(frozen=True)
class Roster:
    """The people, and by which words each of them is found."""

    people: list[Person] = field(default_factory=list)
    keys: dict[int, set[str]] = field(default_factory=dict)

    def find(self, student: str, number: str) -> Person | None:
        """Return the one person whom a submission's student can be."""
        rows = rows_of(student, number, self.keys)
        return self.people[rows[0]] if len(rows) == 1 else None

    def fitted(self, everybody: "Roster", students: Iterable[tuple[str, str]]) -> "Roster":
        """Let each person be found by all that is printed of the student whom the id names.

        Students, each of a name and a number, may be in no roster. Raises ValueError with one
        sentence where an id fits nobody, or several.
        """
        known = [{*keys, *_labels(x.name, x.id)} for x, keys in everybody.with_keys()]
        for student, number in students:
            rows = rows_of(student, number, dict(enumerate(known)))
            own = {numbered(number), number, f"Participant {number}"} if number else set()
            if not rows:
                known.append({student} | own)
            for row in rows:
                name = everybody.people[row].name if row < len(everybody.people) else ""
                known[row] |= {student, *own, *_labels(name, student)}
        keys, taken = {}, set()
        for row, (person, own) in enumerate(self.with_keys()):
            rows = rows_of(person.id, "", dict(enumerate(known)))
            if len(rows) != 1 or rows[0] in taken:
                fits = f"fits {len(rows)} students" if rows[1:] else "is nobody here"
                fits = "is there twice" if taken.intersection(rows) else fits
                raise ValueError(
                    f"{person.id} {fits}: write the student as grades.csv does, the number of "
                    "Canvas or Moodle, or an id of the roster or gradebook."
                )
            keys[row] = own | known[rows[0]]
            taken.add(rows[0])
        return Roster(self.people, keys)

    def with_keys(self) -> list[tuple[Person, set[str]]]:
        """List the people, each with the words by which they are found."""
        return [(person, self.keys[row]) for row, person in enumerate(self.people)]

    def without(self, students: Iterable[tuple[str, str]]) -> list[Person]:
        """List the people who are none of these students, each of a name and a number."""
        found = [self.find(*student) for student in students]
        return [person for person in self.people if person not in found]


def read(text: str) -> Roster:
    """Read a table. Raises ValueError with one sentence."""
    table = Template(text)
    columns: dict[str, int] = {}
    for place, name in enumerate(table.head):
        columns.setdefault(name, place)
    if not columns.keys() & set(IDS):
        raise ValueError("it needs a column id in its first row, and may have name, email and due.")
    people, words = [], []
    for row in range(1, len(table.rows)):
        cells = {name: table.read(row, place) for name, place in columns.items()}
        found = [cells[name] for name in IDS if cells.get(name)]
        person = Person(
            next(iter(found), ""),
            _first(cells, NAMES),
            _first(cells, ADDRESSES),
            _time(cells, "due", row, deadline),
            _time(cells, HANDED_IN, row, parse_time) or _moodles(cells),
        )
        if person.id and person.name not in NOBODY:
            people.append(person)
            words.append(found)
    return of(people, words)


def of(people: list[Person], words: list[list[str]]) -> Roster:
    """Make a roster of people and of their ids, as a table writes them."""
    keys = {}
    for place, (person, ids) in enumerate(zip(people, words, strict=True)):
        numbers = {x.removeprefix("Participant").strip() for x in ids}
        keys[place] = {*ids, *numbers, numbered(person.id), person.name, person.email} - {""}
    return Roster(people, keys)


def _labels(name: str, student: str) -> set[str]:
    """Return how reports and gradebooks print a student who has a name."""
    return {f"{name} ({student})"} if name else set()


def _first(cells: dict[str, str], names: Iterable[str]) -> str:
    return next((cells[name] for name in names if cells.get(name)), "")


def _time(
    cells: dict[str, str], name: str, row: int, read: Callable[[str], datetime]
) -> datetime | None:
    try:
        return read(cells[name]) if cells.get(name) else None
    except ValueError:
        raise ValueError(
            f'line {row + 1}: {cells[name]} is no time such as "2026-12-01 23:59".'
        ) from None


def _moodles(cells: dict[str, str]) -> datetime | None:
    """Read when Moodle had the submission; in other languages than English it says nothing."""
    with contextlib.suppress(ValueError):
        return parse_time(cells.get(MOODLES_TIME, ""))
    return None
