import pytest

from course_lib.checking import catalogue
from course_lib.checking.proof.laws import prove


@pytest.mark.parametrize("id", catalogue.ids())
def test_every_exercise_holds_all_laws(id):
    assert prove(catalogue.load(id)).violations == []
