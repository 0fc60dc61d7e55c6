"""What there is to know of the exercises without loading one."""

import pytest

from course_lib.checking import catalogue


@pytest.mark.usefixtures("private_package")
def test_an_exercise_that_is_not_listed_is_loaded_and_comes_after_those_of_its_lesson():
    assert catalogue.outline("private/twice").title == catalogue.outline("start/hello").title
    lesson = [x for x in catalogue.ids() if catalogue.outline(x).lesson == "01"]
    assert lesson[-1] == "private/twice"
    with pytest.raises(catalogue.UnknownExercise, match="private/twice"):
        catalogue.outline("private/twise")
