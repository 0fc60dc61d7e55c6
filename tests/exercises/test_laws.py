import pytest

from course_lib.exercises import catalogue
from course_lib.exercises.laws import prove


@pytest.mark.parametrize("id", catalogue.ids())
def test_every_exercise_holds_all_laws(id):
    assert prove(catalogue.load(id)).violations == []
