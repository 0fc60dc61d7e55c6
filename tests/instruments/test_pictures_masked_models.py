"""Lesson 16's pictures: what is drawn is what was measured, and so is what is read aloud."""

import pytest

from course_lib.instruments.pictures import masked_models as pictures


@pytest.mark.parametrize(
    ("draw", "needed"),
    [(pictures.two_tasks, "asked for kingdom alone"), (pictures.two_ways, "only the head")],
)
def test_drawings_are_told_in_words(said, draw, needed):
    draw()
    assert needed in said[0]


def test_intents_are_told_as_means_of_the_seeds_for_both_lists(said):
    runs = {"known": [[0.5, 0.7], [1, 1]], "new wordings": [[0.2, 0.4], [0.6, 0.8]]}
    ways = dict.fromkeys(("frozen", "counted words", "not pretrained"), runs)
    figures = {"settings": {"labels": [24, 400]}, "intents": ways}
    low = {"known": [[0.1], [0.2]], "new wordings": [[0.3], [0.4]]}
    control = {"settings": {"blocks": [15, 30]}, "blocks": {"15": low, "30": runs}}
    pictures.intents(figures, control, "found")
    assert "known wordings: a head on MiniLM 60 with 24 labels and 100 with 400" in said[0]
    assert "new wordings: a head on MiniLM 30 with 24 labels and 70 with 400" in said[0]
    assert "on SmolLM2, text alone 30 with 24 labels and 40 with 400" in said[0]


def test_examples_in_the_prompt_are_told_by_their_number_and_by_what_repeats_the_question(said):
    # the last two questions ask for the capitals of South Korea and of Argentina
    told = ["South Korea.", "no"]
    runs = {"0": [0.1], "4": [0.5, 0.7], "8": [0.8]}
    figures = {
        "settings": {"wrong": 4},
        "examples": {n: [{"share": x, "told": told} for x in some] for n, some in runs.items()},
        "wrong examples": [{"share": 0.2}, {"share": 0.4}],
    }
    figures["examples"]["0"][0]["told"] = ["It is Seoul, I say.", ""]
    pictures.examples_in_the_prompt(figures, "found")
    assert "0 examples 10, 4 examples 60, 8 examples 80" in said[0]
    assert "repeat a word of the question: 0, 50, 50." in said[0]
    assert said[0].endswith("4 examples with wrong answers: 30.")
