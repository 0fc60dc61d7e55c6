"""Lesson 01's pictures say in words what they show."""

import pytest
import torch

from course_lib.instruments import results
from course_lib.instruments.pictures import before_attention as pictures

KEPT = results.load("long_words")["figures"]

SIZES = results.load("bottleneck")["figures"]


def test_no_rate_start_or_number_of_steps_makes_the_plain_rnn_read_short_words():
    arms = results.load("plain_rnn")["figures"]["arms"]
    assert len(arms) == 6
    for arm in arms.values():
        assert max(arm["right"]) < 0.1
        assert arm["cat"] != ["K", "AE1", "T"]


def test_training_drives_the_plain_rnn_to_where_the_tanh_is_flat():
    slope = results.load("plain_rnn")["figures"]["slope"]
    assert slope["untrained"] > 0.8
    assert slope["trained"] < 0.2


def test_64_numbers_let_through_about_as_much_as_256_and_16_less():
    for steps in ("1500", "6000"):
        most, same, less = (
            torch.tensor([x["accuracy"] for x in SIZES["runs"][f"256 through {width}"][steps]])
            for width in (256, 64, 16)
        )
        known = [n <= 12 for n in SIZES["lengths"]]
        assert (most.mean(0) - same.mean(0))[known].abs().max() < 0.03
        assert (same.mean(0) - less.mean(0))[SIZES["lengths"].index(8) :].min() > 0.05


def test_attention_reads_more_long_words_than_one_vector_whatever_its_size_and_steps():
    long = slice(SIZES["lengths"].index(9), SIZES["lengths"].index(12) + 1)
    for size, steps in ((64, "1500"), (64, "6000"), (256, "1500"), (256, "6000")):
        vector, attention = (
            torch.tensor([run["accuracy"] for run in SIZES["runs"][arm][steps]])[:, long]
            for arm in (f"one vector of {size}", f"attention, {size}")
        )
        assert (attention.amin(0) > vector.amax(0)).all()


def test_the_long_word_is_told_up_to_its_first_wrong_sound(said):
    pictures.long_word(["S", "UW2", "T", "ER0"])
    assert "The first 2 sounds are right; it says 4 of 32" in said[0]
    pictures.long_word(KEPT["g2p"]["heard"])
    assert "supercalifragilisticexpialidocious" in said[1]
    assert "The first 5 sounds are right; it says 16 of 32" in said[1]


def test_a_network_is_told_how_many_sounds_are_right_where_they_are_wanted(said):
    pictures.said({"yours": ["S", "X", "P", "UW2"], "none": [], "all": pictures.WANTED})
    assert "yours, 2 of 32 right: S X P UW2. none, 0 of 32 right: . all, 32 of 32" in said[0]


def test_what_a_network_adds_has_a_column_of_its_own_and_what_it_leaves_out_none():
    first, *wanted = pictures.WANTED
    columns = pictures._columns([[first, "X", *wanted], [*wanted, "Y"], []])
    assert columns[0] == [first, first, "", ""]
    assert columns[1] == ["", "X", "", ""]
    assert columns[2:-1] == [[sound, sound, sound, ""] for sound in wanted]
    assert columns[-1] == ["", "", "Y", ""]


def test_of_the_long_word_attention_says_most_sounds_and_one_vector_fewer_than_half(said):
    runs = {name: KEPT["readers"][arm][0]["heard"] for name, (arm, _) in pictures.READERS.items()}
    pictures.said(runs)
    assert "one vector, 14 of 32 right" in said[0]
    assert "attention, 22 of 32 right" in said[0]


def test_each_letter_of_the_long_word_belongs_to_a_sound():
    assert len(pictures.WANTED) == len(pictures.LETTERS) == 32
    assert "".join(pictures.LETTERS) == "supercalifragilisticexpialidocious"


def test_a_gradient_is_told_by_its_farthest_token(said):
    pictures.gradients({"RNN": torch.tensor([2.0, 1.0, 2e-5])}, {"RNN": torch.ones(3)})
    assert "RNN, untrained, 2 back: 1e-05; RNN, trained, 2 back: 1e+00." in said[0]


def test_each_share_of_words_is_said(said):
    pictures.by_length(range(3, 5), {"yours": [0.5, 0.25]}, "a title")
    assert "at 3 to 4 letters. yours: 0.50 0.25." in said[0]


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (pictures.course_map, "its two ends lit"),
        (pictures.one_step, "tanh of the sum"),
        (pictures.two_loops, "the only arrow from the encoder to the decoder"),
        (pictures.gates, "update gate z"),
        (pictures.numbered, "the second 2 to 9"),
        (lambda: pictures.squeezed(SIZES), "c of 64, 1,500 steps: 0.70 0.77"),
        (lambda: pictures.errors(KEPT), "35 letters 72. attention, dictionary words: 4 letters 8"),
        (lambda: pictures.where_training_ended(KEPT), "g2p-en 17, at most 8 letters 11, all 18"),
    ],
)
def test_every_picture_has_its_finding_in_words(displayed, draw, needed):
    assert needed in displayed(draw)["text/plain"]


@pytest.mark.parametrize(("kind", "last"), [("RNN", 9), ("window of three", 2), ("attention", 2)])
def test_a_state_is_ready_one_step_after_the_last_that_it_needs(kind, last):
    steps = pictures.ready(kind)
    assert steps[7, 2] == last
    for state, step in steps.items():
        if state[1]:
            assert step == 1 + max(steps[x] for x in pictures.needed(kind, state, 8))
