"""Courses keep the lessons' order, and slides show what a lesson shows."""

import re
from itertools import chain

import nbformat
import pytest

from book import pages, slides, syllabus
from course_lib.files import course_map

NEEDED = re.compile(r"minutes · after lesson (\d\d)")


@pytest.mark.parametrize("course", syllabus.COURSES)
def test_a_course_teaches_each_lesson_after_the_one_that_it_needs(course):
    weeks = syllabus.weeks(course)
    assert len(weeks) == course
    taught = [*chain(*weeks)]
    numbers = [x.number for x in taught]
    for at, lesson in enumerate(taught):
        needed = NEEDED.findall(lesson.file.read_text("utf8"))
        assert {*needed} <= {*numbers[:at]}, lesson.number
    assert len({*numbers}) == len(numbers)
    if syllabus.COURSES[course][0].startswith("All lessons"):
        assert numbers == [x.number for x in course_map.lessons()]


@pytest.mark.parametrize("lesson", course_map.lessons(), ids=lambda x: x.number)
def test_slides_have_all_pictures_predictions_and_formulas_of_a_lesson(lesson):
    notebook = nbformat.read(pages.NOTEBOOKS / lesson.notebook, as_version=4)
    made = [*slides.found(notebook)]
    shown = [drawing for drawing, _ in pages.pictures(notebook.cells)]
    assert [drawing for _, drawing in made if drawing] == shown
    asked = sum(x.source.startswith(pages.GUESS) for x in notebook.cells)
    told = [slide for slide, _ in made]
    assert sum(x.startswith("<h2>Predict</h2>") for x in told) == asked
    assert any(x.startswith("<h2>Formulas</h2>") for x in told) or lesson.number == "00"
