import pytest

from course_lib.checking import catalogue
from course_lib.checking.proof.laws import prove


@pytest.mark.parametrize("exercise_id", catalogue.ids())
def test_every_exercise_holds_all_laws(exercise_id):
    assert prove(catalogue.load(exercise_id)).violations == []
