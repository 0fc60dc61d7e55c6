"""Lesson 14's pictures say in words what they show."""

import pytest

from course_lib.instruments.pictures import brackets as pictures

LOSSES = {"random": {4: 12.0, 9: 12.5}, "chosen": {4: 10.5, 9: 6.25}}


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (pictures.brackets, "gives a small d by d square"),
        (pictures.recurrence, "d by d_v plus d numbers"),
        (
            lambda: pictures.recall(
                {"exact": {4: 1.0, 64: 1.0}, "linear, 272 numbers": {4: 1.0, 64: 0.375}}, 0.1
            ),
            "exact: 1.00 of 4, 1.00 of 64; linear, 272 numbers: 1.00 of 4, 0.38 of 64",
        ),
        (
            lambda: pictures.hash_sort_cut([1, 0, 1, 2, 0, 1, 1, 2], 4),
            "Sorted by bucket they are 1 4 0 2 5 6 3 7",
        ),
        (
            lambda: pictures.choices("It finds", LOSSES, 5.5, 32),
            "random: 12.0 with 4, 12.5 with 9; chosen: 10.5 with 4, 6.2 with 9. All blocks: 5.5",
        ),
    ],
)
def test_every_picture_has_its_finding_in_words(said, draw, needed):
    draw()
    [text] = said
    assert needed in text
