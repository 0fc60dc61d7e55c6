"""What the HTML pages share: the templates of the folder above, their words and colours."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from course_lib.checking.looks import COLOURS, MARKS, ROW_COLOURS, SIGNS, templates
from course_lib.grading.reports.shared.statistics import STATUSES, exercise_title, lesson_title
from course_lib.grading.reports.shared.text import clean, count, number, points, who

BY_HAND = {"marked": "#3f6fb5", "to be marked": COLOURS["not attempted"]}


def render(template: str, **values: Any) -> str:
    """Fill one of the templates in; every string is escaped."""
    return clean(_TEMPLATES.get_template(template).render(values)) + "\n"


def breakable(name: str) -> Markup:
    """Let a long name go on in the next line after a _ rather than inside a number."""
    return Markup("_<wbr>").join(name.split("_"))


def colour(status: str) -> str:
    """Return the colour in which the notebooks' panel shows a status."""
    return (COLOURS | BY_HAND).get(status, ROW_COLOURS[False])


def sign(status: str) -> str:
    """Return the sign by which the notebooks' panel shows a status."""
    return "✎" if status in BY_HAND else SIGNS.get(status, "✗")


_TEMPLATES = templates(Path(__file__).parents[1])
_TEMPLATES.globals |= {
    "STATUSES": STATUSES,
    "MARKS": MARKS,
    "colour": colour,
    "sign": sign,
    "exercise_title": exercise_title,
    "lesson_title": lesson_title,
    "count": count,
}
_TEMPLATES.filters |= {
    "number": number,
    "points": points,
    "who": who,
    "breakable": breakable,
    "slug": lambda x: x.replace(" ", "-"),
}
