"""The laws of the map: each topic of the lectures is taught, and what the map names is there."""

import re

import nbformat
import pytest

from course_lib.files.course_map import (
    exercises,
    lesson_of,
    page_files,
)
from course_lib.files.paths import ROOT
from lessons.build import notebook_path
from lessons.topics import disagreements, topics

HEADING = re.compile(r"^#{2,3} (.+)$", flags=re.MULTILINE)
LECTURE = re.compile(r"\bL[1-5]\b|\blectures?\b")


def sections(number):
    """Return the headings of a lesson and its explorations, each with the cells below it."""
    found = {}
    for path in [x for page, x in page_files().items() if lesson_of(page) == number]:
        open_ones = []
        for cell in nbformat.read(notebook_path(path), as_version=4).cells:
            if cell.cell_type == "markdown":
                open_ones = HEADING.findall(cell.source) or open_ones
            for heading in open_ones:
                found.setdefault(heading, []).append(cell)
    return found


def measures(cell):
    """Tell whether a cell shows what it computed, in figures or in a picture."""
    return cell.cell_type == "code" and not cell.source.startswith("check(") and cell.outputs


def test_every_topic_and_every_disagreement_has_one_row():
    assert [x.id for x in topics()] == [f"T{n:02}" for n in range(1, 61)]
    assert [x.id for x in disagreements()] == [f"D{n:02}" for n in range(1, 21)]


@pytest.mark.parametrize("topic", topics(), ids=lambda x: x.id)
def test_a_topic_is_taught_exercised_and_measured_where_the_map_says(topic):
    assert topic.section in sections(topic.lesson)
    assert {*topic.exercises.split()} <= {x.id for x in exercises()}
    if topic.measured:
        number, heading = topic.measured.split(" ", 1)
        assert any(map(measures, sections(number)[heading]))
    for name in topic.results.split():
        assert (ROOT / "research" / "results" / f"{name}.json").is_file(), name
    assert topic.measured or not topic.results, "a figure that no section shows"


@pytest.mark.parametrize("slip", disagreements(), ids=lambda x: x.id)
def test_a_disagreement_is_shown_with_its_lecture_and_has_a_test(slip):
    cells = sections(slip.lesson)[slip.section]
    told = [x.source for x in cells if x.cell_type == "markdown"]
    assert any(map(LECTURE.search, told))
    assert any(slip.id in x for x in told), "the box names its test"
    tests = (ROOT / "tests" / "components" / "test_disagreements.py").read_text("utf8")
    assert re.search(rf"^def test_\w*{slip.id.lower()}_", tests, flags=re.MULTILINE)
