"""What lesson 08 says of its sorter, its bug and its limit holds in the stored runs."""

from course_lib.instruments import results

FIGURES = results.load("sequences")["figures"]
RUNS = FIGURES["runs"]


def test_the_sorter_sorts_what_it_has_never_seen():
    assert min(run["right"] for runs in RUNS.values() for run in runs) > 0.99


def test_letters_that_repeat_break_it_until_it_is_trained_on_them():
    assert max(run["repeating"] for run in RUNS["sort"]) < 0.3
    assert min(run["repeating"] for run in RUNS["sort, letters repeat"]) > 0.97


def test_a_loss_that_reads_what_it_predicts_is_nearly_zero_and_writes_one_letter():
    for run in FIGURES["unshifted"]:
        assert run["losses"][-1] < 0.01
        assert run["right"] == 0
        assert run["one letter"] > 0.9


def test_a_decoder_without_a_mask_has_a_loss_of_nearly_zero_and_sorts_nothing():
    assert len(FIGURES["unmasked"]) == 3
    for run in FIGURES["unmasked"]:
        assert run["loss"] < 0.02
        assert run["right"] == 0
