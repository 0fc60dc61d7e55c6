"""When work is due, for each student, and what lateness costs."""

import math
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from course_lib.grading.submissions.files import SubmittedFile
from course_lib.grading.submissions.roster import Roster

PENALTY = re.compile(r"(?P<percent>\d+(\.\d+)?)(?P<per_day>/day)?")
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Penalty:
    """So many percent of the score, once or for each day that has begun."""

    percent: float = 0.0
    per_day: bool = False

    def of(self, late: timedelta) -> float:
        """Return the percentage that so much lateness costs."""
        days = max(math.ceil(late / DAY), 1) if self.per_day else 1
        return min(days * self.percent, 100.0)


@dataclass(frozen=True)
class Lateness:
    """When work is due; until `grace` has passed nothing is late; extensions are people's own."""

    due: datetime | None = None
    penalty: Penalty = Penalty()
    grace: timedelta = timedelta()
    extensions: Roster = field(default_factory=Roster)

    def percent(self, submitted: SubmittedFile) -> float | None:
        """Return what percentage a submission loses; None where it is not late.

        It is late by its time, or where Canvas says so and the student has no extension.
        """
        person = self.extensions.find(submitted.student, submitted.number)
        due = (person and person.due) or self.due
        time = submitted.time and moment(submitted.time)
        if due and time and (late := time - moment(due)) > self.grace:
            return self.penalty.of(late)
        if submitted.late and not (person and person.due):
            return self.penalty.of(timedelta())
        return None


def moment(time: datetime) -> datetime:
    """Read a time without a zone as this machine's own, so that any two can be compared."""
    try:
        return time.astimezone()
    except (OverflowError, OSError, ValueError):  # a year that no machine's clock has
        return time.replace(tzinfo=datetime.now().astimezone().tzinfo)


def penalty(text: str) -> Penalty:
    """Read `20` or `10/day`. Raises ValueError."""
    match = PENALTY.fullmatch(text)
    if not match or float(match["percent"]) > 100:
        raise ValueError("a penalty is a percentage, from 0 to 100, or one for each day: 10/day.")
    return Penalty(float(match["percent"]), bool(match["per_day"]))
