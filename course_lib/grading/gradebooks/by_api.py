"""Grades into Canvas or Moodle over the network: first what would be sent, then the sending.

Canvas: https://canvas.instructure.com/doc/api/submissions.html (update_grades); Moodle:
https://docs.moodle.org/dev/Web_service_API_functions (mod_assign_save_grades). Students are found
as in the files that these export. Nothing is ever sent but to the server that was named.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from course_lib.grading.gradebooks.template import FilledTemplate, grades, numbered
from course_lib.grading.marks.schema import Results
from course_lib.grading.reports.shared.statistics import to_be_marked
from course_lib.grading.reports.shared.text import count

SECONDS = 30
PAGES = 100  # of students, a hundred each


class Refused(Exception):
    """The server did not do it; the message is one sentence."""


class Grade(NamedTuple):
    """What one student is to get; `student` is the server's own number."""

    student: str
    label: str
    grade: str
    comment: list[str]


@dataclass(frozen=True)
class Place:
    """A server, and the assignment there."""

    url: str
    token: str
    assignment: str
    course: str = ""

    def client(self) -> httpx.Client:
        """Return a client that speaks to this server alone. Raises Refused."""
        try:
            parts = urlsplit(self.url)
        except ValueError as error:
            raise Refused(f"{self.url} is no address: {error}.") from None
        local = parts.hostname in ("localhost", "127.0.0.1")
        if parts.scheme != "https" and not (local and parts.scheme == "http"):
            raise Refused(f"{self.url} is no https address: a token is not sent in the clear.")
        try:
            return httpx.Client(base_url=self.url, timeout=SECONDS, follow_redirects=False)
        except httpx.InvalidURL as error:
            raise Refused(f"{self.url} is no address: {error}.") from None


class Canvas:
    """One assignment of a course in Canvas."""

    name = "Canvas"

    def __init__(self, place: Place):
        self._place, self._client = place, place.client()
        self._client.headers["Authorization"] = f"Bearer {place.token}"
        self._course = f"/api/v1/courses/{place.course}"
        self._assignment = f"{self._course}/assignments/{place.assignment}"

    def points(self) -> float | None:
        """Return the points of the assignment."""
        return _read(self._client.get(self._assignment)).get("points_possible")

    def students(self) -> Iterator[tuple[str, str, set[str]]]:
        """Yield the number, the name and the keys of each student."""
        query = {"enrollment_type[]": "student", "per_page": "100"}
        answer = self._client.get(f"{self._course}/users", params=query)
        for _ in range(PAGES):
            for user in _read(answer):
                keys = (user.get(key) for key in ("id", "name", "sortable_name", "login_id"))
                yield str(user["id"]), user["name"], {str(key) for key in keys if key}
            following = answer.links.get("next", {}).get("url")
            if not following or urlsplit(following).netloc != urlsplit(self._place.url).netloc:
                return
            answer = self._client.get(following)

    def send(self, grades: list[Grade]) -> str:
        """Send all grades at once, and return what Canvas says."""
        data = {}
        for one in grades:
            data[f"grade_data[{one.student}][posted_grade]"] = one.grade
            data[f"grade_data[{one.student}][text_comment]"] = "\n".join(one.comment)
        answer = self._client.post(f"{self._assignment}/submissions/update_grades", data=data)
        state = _read(answer).get("workflow_state", "accepted")
        return f"Canvas has taken {len(grades)} grades ({state})."


class Moodle:
    """One assignment of Moodle."""

    name = "Moodle"

    def __init__(self, place: Place):
        self._place, self._client = place, place.client()

    def points(self) -> float | None:
        """Return None: Moodle's service does not say it of one assignment."""
        return None

    def students(self) -> Iterator[tuple[str, str, set[str]]]:
        """Yield the number, the name and the keys of each student."""
        query = {"assignid": self._place.assignment, "groupid": "0", "filter": ""}
        for user in self._call("mod_assign_list_participants", query):
            keys = (user.get(key) for key in ("id", "fullname", "email", "idnumber", "username"))
            yield str(user["id"]), user["fullname"], {str(key) for key in keys if key}

    def send(self, grades: list[Grade]) -> str:
        """Send all grades at once."""
        data = {"assignmentid": self._place.assignment, "applytoall": "0"}
        for place, one in enumerate(grades):
            comment = "plugindata][assignfeedbackcomments_editor]"
            fields = {
                "userid]": one.student,
                "grade]": one.grade,
                "attemptnumber]": "-1",
                "addattempt]": "0",
                "workflowstate]": "",
                f"{comment}[text]": "\n".join(one.comment),
                f"{comment}[format]": "2",  # plain text
            }
            data |= {f"grades[{place}][{name}": value for name, value in fields.items()}
        self._call("mod_assign_save_grades", data)
        return f"Moodle has taken {len(grades)} grades."

    def _call(self, function: str, data: dict[str, str]) -> Any:
        who = {
            "wstoken": self._place.token,
            "wsfunction": function,
            "moodlewsrestformat": "json",
        }
        answer = _read(self._client.post("/webservice/rest/server.php", data=who | data))
        if isinstance(answer, dict) and "exception" in answer:
            raise Refused(f"Moodle says: {answer.get('message', answer['exception'])}")
        return answer


def plan(
    server: Canvas | Moodle, results: Results, scale: float | None
) -> tuple[list[Grade], FilledTemplate]:
    """Return what would be sent, and what is to be known of it. Raises Refused."""
    if waiting := to_be_marked(results):
        raise Refused(
            f"{count(waiting, 'answer')} to be marked by hand: nothing is sent before that."
        )
    filled = FilledTemplate(server.name)
    try:
        students = list(server.students())
        points = float(server.points() or 0)
    except (httpx.HTTPError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise Refused(
            f"{server.name} could not be asked: {error or type(error).__name__}"
        ) from None
    rows = {i: (name, {*keys, numbered(x)}) for i, (x, name, keys) in enumerate(students)}
    found = [
        Grade(*students[row][:2], grade, why)
        for row, grade, why in grades(results, rows, points, scale, filled)
    ]
    return found, filled


def _read(answer: httpx.Response) -> Any:
    """Return the content of a reply. Raises Refused."""
    if not answer.is_success:
        raise Refused(
            f"{answer.request.url.host} answered {answer.status_code} {answer.reason_phrase}."
        )
    try:
        return answer.json()
    except ValueError:
        raise Refused(f"{answer.request.url.host} did not answer with JSON.") from None
