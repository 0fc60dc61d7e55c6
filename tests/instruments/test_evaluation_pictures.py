"""Lesson 11's pictures say in words what they show."""

import pytest

from course_lib.instruments import results
from course_lib.instruments.pictures import evaluation as pictures

DUEL = results.load("translation")["figures"]["duel"]


def test_each_translator_is_told_on_each_part(said):
    scores = {
        "near\n(2 texts)": {"ours": 70.0, "Firefox": 44.1, "your copy": 50.2},
        "far\n(3 texts)": {"ours": 38.6, "Firefox": 47.9},
    }
    pictures.parts(scores, "found")
    assert "near, (2 texts): ours 70.0, Firefox 44.1, your copy 50.2; far, (3 texts): " in said[0]


def test_an_interval_is_told_by_both_ends(said):
    pictures.intervals({"all": (-0.51, 4.0), "far": (-13.0, -5.0)}, "found")
    assert said[0].endswith("all: −0.5 to +4.0; far: −13.0 to −5.0.")


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (lambda: pictures.one_text(DUEL), "in the last seven days), 5 words of the reference."),
        (pictures.beam, "A beam of 2 keeps house and a. Then house is finished"),
    ],
)
def test_a_drawing_has_its_finding_in_words(displayed, draw, needed):
    assert needed in displayed(draw)["text/plain"]
