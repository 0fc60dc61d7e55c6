"""Lesson 10's pictures say in words what they show, and hold the sentences beside them."""

import pytest

from course_lib.instruments import results
from course_lib.instruments.pictures import language_model as pictures
from course_lib.language_model import LanguageModel
from course_lib.pretrained import shakespeare_model
from course_lib.transformer import EncoderBlock

LADDER = results.load("language_model")["figures"]
SWEPT = results.load("optimizer_rates")["figures"]["losses"]


def test_texts_are_read_aloud_below_their_names_whatever_characters_they_hold(said):
    pictures.texts({"first": "\n$a$ {b}\n" + "word " * 12, "second": "x"}, "title")
    assert "first: “$a$ {b} / word word" in said[0]
    assert said[0].endswith("second: “x”.")


def test_no_line_of_a_text_is_wider_than_its_column():
    rows = pictures._wrapped("\n".join(["word " * 30, "x" * 90]))
    assert len(rows) <= pictures.LINES
    assert max(len(row) for row, _ in rows) + len(pictures.GOES_ON) <= pictures.LINE


def test_a_long_line_is_one_line_in_words_and_marked_where_it_goes_on(said):
    pictures.texts({"one": "word " * 12 + "\nend", "other": "x"}, "title")
    assert f"one: “{' '.join(['word'] * 12)} / end”" in said[0]
    assert [goes_on for _, goes_on in pictures._wrapped("word " * 12 + "\nend")] == [
        *(False, True),
        False,
    ]


def test_the_larger_model_is_eight_times_as_large_and_has_read_the_text_five_times():
    own = LanguageModel(77, 2, 96, 4, 384, 64)
    models = shakespeare_model.load(LanguageModel, EncoderBlock), own
    larger, smaller = (sum(x.numel() for x in model.parameters()) for model in models)
    assert round(larger / smaller) == 8
    assert round(LADDER["weights"]["passes"]) == 5


def test_targets_are_the_inputs_one_place_on(said):
    pictures.shifted("ab c")
    assert "Inputs a, b, ␣; targets b, ␣, c:" in said[0]


def test_the_best_context_of_each_way_to_count_is_named(said):
    pictures.counted({"one": {1: 2.0, 2: 1.5, 3: 1.75}, "other": {1: 2.0, 2: 1.5, 3: 1.25}})
    assert "one is lowest at 2 with 1.500; other is lowest at 3 with 1.250" in said[0]


def test_a_training_is_told_by_its_ends_and_the_lines_across_it(said):
    pictures.training([4.0] * 10 + [2.0] * 10, {"the table": 1.5}, "title")
    assert "falls from 4.0 to 2.0 in 20 steps" in said[0]
    assert "the table 1.50" in said[0]


def test_the_chances_of_a_line_break_are_told_where_lines_do_end(said):
    pictures.line_ends("ab\nc", {"one": [0.1, 0.2, 0.75, 0.3], "other": [0, 0, 0.25, 0]}, "title")
    assert "“ab / c”" in said[0]
    assert "one 0.75; other 0.25" in said[0]


def test_contexts_are_told_with_the_n_gram_model(said):
    curves = {"short": {1: 2.0, 2: 1.0}, "long": {1: 2.0, 2: 1.0, 4: 0.5}}
    pictures.by_context(curves, {"n-gram model": 1.25, "told": 0.75}, "t")
    assert "n-gram model 1.250; told 0.750; short 2.000 with 1, 1.000 with 2; long" in said[0]


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (pictures.model, "same matrix E transposed"),
        (lambda: pictures.two_samples(LADDER), "A: “To your wisdom"),
        (lambda: pictures.ladder(LADDER, "title"), "counting 1.488"),
        (lambda: pictures.swept(SWEPT, "title"), "Muon: 1.438 at 0.005"),
    ],
)
def test_every_picture_has_its_finding_in_words(said, draw, needed):
    draw()
    [text] = said
    assert needed in text


def test_the_ladder_is_as_the_exploration_says():
    losses = {
        name: [run["loss"] for run in rung["runs"].values()]
        for name, rung in LADDER["rungs"].items()
    }

    def better(before, after):
        """Count the runs that a rung has clearly ahead of the one before it."""
        pairs = zip(losses[before], losses[after], strict=True)
        return sum(x - y > 0.003 for x, y in pairs)

    adamw = [x for name in ("nanogpt", "modern", "windows", "windows_fast") for x in losses[name]]
    assert max(losses["muon"]) < min(adamw)
    assert min(losses["windows"] + losses["windows_fast"]) > max(losses["modern"])
    steps = ("nanogpt", "modern"), ("muon", "bfloat16"), ("bfloat16", "corrected")
    assert [better(*step) for step in steps] == [1, 3, 3]
    assert better("corrected", "dropout") == 1
    assert better("dropout", "corrected") == 2


def test_muon_at_its_worst_rate_is_ahead_of_adamw_at_its_best():
    assert max(SWEPT["Muon"].values()) < min(SWEPT["AdamW"].values())
    assert max(SWEPT["Muon"].values()) - min(SWEPT["Muon"].values()) < 0.01
