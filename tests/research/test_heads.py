"""What the experiment on heads in a block finds, beside lesson 06, holds in every run."""

from course_lib.instruments import results

KEPT = results.load("heads")["figures"]


def test_several_heads_find_both_letters_and_one_finds_half_of_them():
    assert max(KEPT["right"]["1"]) < 0.6
    assert min(*KEPT["right"]["2"], *KEPT["right"]["8"]) > 0.99


def test_one_head_finds_them_in_five_times_the_steps_only_where_states_are_normed():
    assert KEPT["longer"]["steps"] == 5 * KEPT["steps"]
    assert max(KEPT["longer"]["right"]) < 0.6
    assert min(KEPT["longer"]["normed"]) > 0.99
