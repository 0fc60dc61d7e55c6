"""Lesson 09's pictures say in words what they show."""

import pytest

from course_lib.instruments.pictures import real_models as pictures


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (pictures.outlines, "thirty pre-norm blocks"),
        (pictures.gates, "multiplied with W3's entry by entry"),
        (pictures.shared_keys, "query heads 0 to 2 share one"),
        (pictures.cache_step, "The query meets all t keys"),
    ],
)
def test_a_drawing_has_its_finding_in_words(displayed, draw, needed):
    assert needed in displayed(draw)["text/plain"]
