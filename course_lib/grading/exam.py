"""An exam of *find the bug* whose pages no other student has: drawn, handed out, and marked.

Which fault a page has, and the numbers in its names, are drawn from the class's seed, the student
and the exercise: the same class, the same bytes. The key says which fault it was. An answer counts
if it passes the exercise's check and is the student's own page but for one place: who hands in the
public solution, or another student's page, has not found the fault.
"""

import hashlib
import json
import sys
from dataclasses import asdict, dataclass, field

from course_lib.answers.source import names_used, self_contained, source_of
from course_lib.checking.catalogue import ids, load, outline
from course_lib.checking.exercise import Exercise
from course_lib.checking.laws.faults import ROOM, apart, faults
from course_lib.checking.notebook.solution_text import of_lesson
from course_lib.files.course_map import lesson_of
from course_lib.grading.marks.entries import plain
from course_lib.grading.marks.schema import ExerciseResult
from course_lib.grading.submissions import roster
from course_lib.grading.submissions.roster import Person, Roster

INTRODUCTION = """\
# Find the bug

On each of these pages one place is wrong, and only one. Find it and mend it there: change nothing
else, since an answer that is written anew does not count. The pages of others have other faults.
`check` says whether yours is mended."""


@dataclass(frozen=True)
class Page:
    """What one student is handed out for one exercise: the fault is `wrong`, for `right`.

    `before` is what the page stands on: imports, helpers, and the lesson's other answers.
    """

    before: str
    handed_out: str
    wrong: str
    right: str

    def marked(self, result: ExerciseResult) -> ExerciseResult:
        """Return a verdict as an exam counts it: all points for a page that is mended, or none."""
        result = result.copy()
        fault = f"The fault was `{self.wrong}` for `{self.right}`."
        page = f"{self.before}\n{self.handed_out}"
        differing = apart(page, result.get("source", ""))
        if result["status"] == "passed" and differing <= ROOM:
            result["message"] = plain(f"{result['message']} {fault}")
            return result
        result["points"] = 0
        if result["status"] == "passed":
            result["status"] = "forbidden"
            said = f"This passes, and is not the page that was handed out: {differing} characters "
            result["message"] = plain(f"{said}differ. {fault}")
        elif not differing:
            result["status"] = "not attempted"
            result["message"] = plain(f"This is the page as it was handed out. {fault}")
        else:
            result["message"] = plain(f"{result['message']} {fault}")
        return result


@dataclass(frozen=True)
class Key:
    """Whose page has which fault: for the id of each person, the pages by exercise."""

    roster: Roster = field(default_factory=Roster)
    pages: dict[str, dict[str, Page]] = field(default_factory=dict)

    @property
    def exercises(self) -> list[str]:
        """The exercises that there are pages of."""
        return list(dict.fromkeys(x for own in self.pages.values() for x in own))

    def marked(
        self, student: str, number: str, results: dict[str, ExerciseResult]
    ) -> dict[str, ExerciseResult]:
        """Return a student's verdicts as the exam counts them."""
        if not self.pages:
            return results
        person = self.roster.find(student, number)
        own = self.pages[person.id] if person else {}
        return {x: own[x].marked(y) if x in own else _nobodys(y) for x, y in results.items()}


def _nobodys(result: ExerciseResult) -> ExerciseResult:
    said = "The key has no page of this student."
    return ExerciseResult({**result, "points": 0, "message": said})


def draw(exercise: Exercise, seed: str, student: str) -> Page:
    """Draw a student's page. Raises NoFaults where an exercise has none."""
    salt = f"{seed}\0{student}\0{exercise.id}"
    several = faults(exercise)
    drawn = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:8])
    fault = several[drawn % len(several)]
    return Page(_before(exercise), fault.page(exercise, salt), fault.wrong, fault.right)


def notebook(pages: dict[str, Page]) -> dict:
    """Return the notebook that a student gets, as its JSON says it."""
    cells = [_text(INTRODUCTION), _code("from course_lib.exercises import check, mine")]
    for number, (exercise_id, page) in enumerate(pages.items(), start=1):
        exercise = load(exercise_id)
        title = outline(exercise_id).title.removeprefix("Find the bug: ")
        cells += [_text(f"## {number}. {title}"), _code(page.before)]
        cells += [
            _code(page.handed_out.rstrip(), exercise=exercise_id),
            _code(f'check("{exercise_id}", {exercise.name})'),
        ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def as_json(key: Key) -> str:
    """Write the key as text."""
    people = [
        {"id": x.id, "name": x.name, "email": x.email}
        | {"pages": {name: asdict(page) for name, page in key.pages[x.id].items()}}
        for x in key.roster.people
    ]
    return json.dumps({"students": people}, indent=1, ensure_ascii=False) + "\n"


def read(text: str) -> Key:
    """Read a key. Raises ValueError with one sentence."""
    try:
        students = json.loads(text)["students"]
        people = [Person(x["id"], x["name"], x["email"]) for x in students]
        pages = {x["id"]: {y: Page(**z) for y, z in x["pages"].items()} for x in students}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("it is no key that `course exam` has written.") from None
    return Key(roster.of(people, [[x.id] for x in people]), pages)


def _before(exercise: Exercise) -> str:
    """Write what a page stands on: imports, helpers, and the lesson's other answers."""
    lesson, own = lesson_of(exercise.lesson), source_of(exercise.reference)
    module = vars(sys.modules[exercise.reference.__module__])
    others = {
        x.name: x.id
        for x in map(load, ids())
        if lesson_of(x.lesson) == lesson and x is not exercise and module.get(x.name) is x.reference
    }
    whole = self_contained(exercise.reference, of_lesson(exercise.lesson), others)
    before = whole[: whole.rindex(own)].rstrip()
    used = names_used(exercise.reference, own).keys() & others.keys()
    lines = [f'{name} = mine("{others[name]}")' for name in sorted(used)]
    return "\n".join([*lines, before]).strip()


def _text(source: str) -> dict:
    lines = source.splitlines(keepends=True)
    return {"cell_type": "markdown", "metadata": {}, "source": lines}


def _code(source: str, **metadata: str) -> dict:
    lines = source.splitlines(keepends=True)
    empty = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "metadata": metadata, "source": lines, **empty}
