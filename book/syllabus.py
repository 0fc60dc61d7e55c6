"""Which lessons in which week: courses of 6, 10 and 14 weeks, for the page of instructors."""

from course_lib.files import course_map
from course_lib.files.course_map import Page

# what the course is about, and the lessons of each week
COURSES: dict[int, tuple[str, str]] = {
    6: (
        "From a recurrent network to a Transformer that writes and translates, and long texts.",
        "00 01 02 | 03 04 | 05 06 07 | 08 09 | 10 11 | 13",
    ),
    10: (
        "All lessons, most weeks with two.",
        "00 01 | 02 03 | 04 | 05 06 | 07 08 | 09 10 | 11 12 | 13 14 | 15 16 | 17 18",
    ),
    14: (
        "All lessons, most of them with a week to themselves, and time for explorations.",
        "00 01 | 02 | 03 | 04 | 05 | 06 | 07 | 08 | 09 | 10 | 11 12 | 13 14 | 15 16 | 17 18",
    ),
}


def weeks(course: int) -> list[list[Page]]:
    """Return the lessons of each week of a course."""
    lessons = {x.number: x for x in course_map.lessons()}
    _, plan = COURSES[course]
    return [[lessons[number] for number in week.split()] for week in plan.split("|")]
