"""What there is to know of the exercises without loading one."""

import pytest

from course_lib.checking import catalogue


@pytest.mark.parametrize(
    ("exercise_id", "said"),
    [
        ("attention/softmax", "Next: `attention/dot_scores` (8 minutes · ●○○)."),
        ("attention/additive_scores", "Next: `self_attention/parameter_free` of lesson 03 ("),
        ("speculative/accept", "This was the last exercise of the course."),
    ],
)
def test_what_is_next_is_what_stands_next_in_the_notebooks(exercise_id, said):
    assert catalogue.what_is_next(exercise_id).startswith(said)


@pytest.mark.usefixtures("private_package")
def test_an_exercise_that_is_not_listed_is_loaded_and_comes_after_those_of_its_lesson():
    assert catalogue.outline("private/twice").title == catalogue.outline("start/hello").title
    lesson = [x for x in catalogue.ids() if catalogue.outline(x).lesson == "01"]
    assert lesson[-1] == "private/twice"
    with pytest.raises(catalogue.UnknownExercise, match="private/twice"):
        catalogue.outline("private/twise")
