"""The pictures of distillation say in words what they show."""

import pytest

from course_lib.instruments import plots, results
from course_lib.instruments.pictures import distilling


@pytest.fixture
def said(monkeypatch):
    texts = []
    monkeypatch.setattr(plots, "show", lambda figure, alt: texts.append(alt))
    return texts


def test_both_targets_of_a_place_are_told(said):
    distilling.two_targets("take my m", "o", {"a": 0.29, "o": 0.28, "\n": 0.1})
    assert said == [
        "After “take my m” the text has 'o'. The larger model gives a 0.29, o 0.28, \\n 0.10."
    ]


def test_the_best_and_the_last_loss_are_told(said):
    distilling.along_the_way(results.load("distillation")["figures"])
    [text] = said
    assert text.count("best") == 2
    assert "the larger model itself" in text
