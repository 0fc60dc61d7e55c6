"""The key to an exam of *find the bug*, and what an answer to one of its pages is worth.

An answer counts if it passes the exercise's check and is the student's own page but for one place:
who hands in the public solution, or another student's page, has not found the fault.
"""

import json
from dataclasses import asdict, dataclass, field

from course_lib.grading.marks.entries import plain
from course_lib.grading.marks.schema import ExerciseResult
from course_lib.grading.submissions import roster
from course_lib.grading.submissions.roster import Person, Roster


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
        from course_lib.checking.laws.page_distance import ROOM, apart  # few grade an exam

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
