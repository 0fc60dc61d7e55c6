"""When work is due, for each student, and what lateness costs."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from course_lib.grading.reports.shared.text import count, number
from course_lib.grading.submissions.files import SubmittedFile
from course_lib.grading.submissions.roster import Person, Roster

PENALTY = re.compile(r"(?P<percent>\d+(\.\d+)?)(?P<per_day>/day)?")
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@dataclass(frozen=True)
class Penalty:
    """So many percent of the score, once or for each day that has begun."""

    percent: float = 0.0
    per_day: bool = False

    def of(self, late: timedelta) -> float:
        """Return the percentage that so much lateness costs."""
        days = max(math.ceil(late / DAY), 1) if self.per_day else 1
        return min(days * self.percent, 100.0)

    def sentence(self, late: timedelta) -> str:
        """Say what so much lateness costs, and by which rule."""
        if not self.percent:
            return "which costs nothing"
        rule = f" ({number(self.percent)}% for each day that has begun)" if self.per_day else ""
        return f"which costs {number(self.of(late))}% of the points{rule}"


@dataclass(frozen=True)
class Lateness:
    """When work is due; until `grace` has passed nothing is late; extensions are people's own.

    When it was handed in is what the extensions say, then what the records say, such as a roster
    and Moodle's worksheet, and then the time of the submission.
    """

    due: datetime | None = None
    penalty: Penalty = Penalty()
    grace: timedelta = timedelta()
    extensions: Roster = field(default_factory=Roster)
    records: tuple[Roster, ...] = ()

    def percent(self, submitted: SubmittedFile) -> float | None:
        """Return what percentage a submission loses; None where it is not late.

        It is late by its time, or where nothing says that, if Canvas says so.
        """
        return self._percent(submitted, self._due(submitted))

    def _percent(self, submitted: SubmittedFile, due: datetime | None) -> float | None:
        time = self.time(submitted)
        if due and time:
            late = time - due
            return self.penalty.of(late) if late > self.grace else None
        return self.penalty.of(timedelta()) if submitted.late else None

    def sentence(self, submitted: SubmittedFile) -> str:
        """Say of a late submission when it was handed in and due, and what that costs."""
        due, time = self._due(submitted), self.time(submitted)
        if due and time:
            late = time - due
            times = f"Handed in {_written(time)}, due {_written(due)}: {_so_long(late)} late"
            return f"{times}, {self.penalty.sentence(late)}."
        return f"Handed in late, as Canvas says, {self.penalty.sentence(timedelta())}."

    def extended(self, submitted: Iterable[SubmittedFile]) -> list[SubmittedFile]:
        """List what is in time by a deadline of the student's own alone."""
        in_time = [x for x in submitted if x.notebook and self.percent(x) is None]
        return [x for x in in_time if self._percent(x, self.due) is not None]

    def time(self, submitted: SubmittedFile) -> datetime | None:
        """Return when a submission was handed in; None where nothing says it."""
        found = (self._person(x, submitted) for x in (self.extensions, *self.records))
        said = (person.handed_in for person in found if person and person.handed_in)
        return next(said, submitted.time)

    def unknown(self, submitted: Iterable[SubmittedFile]) -> list[SubmittedFile]:
        """List the files of which nothing says whether, or by how much, they are late."""
        there = (x for x in submitted if x.notebook and not x.problem and not self.time(x))
        return [x for x in there if self._is_unclear(x)]

    def _is_unclear(self, submitted: SubmittedFile) -> bool:
        """Tell whether it takes a time to say what a submission without one loses.

        Canvas says who is late by its own deadline, not by how much.
        """
        if submitted.platform != "Canvas":
            return bool(self._due(submitted))
        person = self._person(self.extensions, submitted)
        own = bool(person and person.due)
        return submitted.late and (own or self.penalty.per_day)

    def _due(self, submitted: SubmittedFile) -> datetime | None:
        person = self._person(self.extensions, submitted)
        return (person and person.due) or self.due

    def _person(self, roster: Roster, submitted: SubmittedFile) -> Person | None:
        return roster.find(submitted.student, submitted.number)


def penalty(text: str) -> Penalty:
    """Read `20` or `10/day`. Raises ValueError."""
    match = PENALTY.fullmatch(text)
    if not match or float(match["percent"]) > 100:
        raise ValueError("a penalty is a percentage, from 0 to 100, or one for each day: 10/day.")
    return Penalty(float(match["percent"]), bool(match["per_day"]))


def _written(time: datetime) -> str:
    """Write a time in this machine's zone, as `--due` reads it."""
    return time.astimezone().isoformat(" ", "minutes")


def _so_long(late: timedelta) -> str:
    """Write a span by its two largest units, such as "1 day and 9 hours"."""
    hours, minutes = divmod(math.ceil(late / MINUTE), 60)
    days, hours = divmod(hours, 24)
    spans = [(days, "day"), (hours, "hour"), (minutes, "minute")]
    return " and ".join([count(n, noun) for n, noun in spans if n][:2])
