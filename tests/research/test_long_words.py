"""What lesson 01 says of long words holds in every kept run."""

import torch

from course_lib.instruments import results

LONG = results.load("long_words")["figures"]
SIZES = results.load("bottleneck")["figures"]
KEPT = results.load("letters_kept")["figures"]
ALIGNMENT = results.load("long_alignment")["figures"]


def longest(name):
    """Return what a small network did with joined words of 35 letters, for each seed."""
    return [run["joined"][-1] for run in LONG["readers"][name]]


def share(arm, steps=1500):
    """Return the share of words all right at each length, a mean over seeds."""
    return torch.tensor([run["accuracy"] for run in SIZES["runs"][arm][str(steps)]]).mean(0)


def test_a_network_stops_where_its_training_words_stopped():
    for name, least, most in (("at most 8 letters", 10, 13), ("all", 16, 20)):
        assert all(least < row["written"] < most for row in longest(name))
    for row in longest("all and joined"):
        assert row["written"] > row["wanted"] - 3
    assert 16 < LONG["g2p"]["joined"][-1]["written"] < 18
    assert sum(LONG["letters"][20:]) == 11


def test_trained_on_long_words_one_vector_is_wrong_and_attention_right_of_most_sounds():
    for name, least, most in (
        ("all and joined", 0.7, 0.75),
        ("attention, all and joined", 0.25, 0.3),
    ):
        assert all(least < row["error"] < most for row in longest(name))


def test_through_one_vector_the_errors_of_each_sound_climb_with_length_as_lesson_01_says():
    one, attention = (
        torch.tensor(
            [
                [row["error"] for kind in ("dictionary", "joined") for row in run[kind]]
                for run in LONG["readers"][name]
            ]
        )
        for name in ("all and joined", "attention, all and joined")
    )
    means = one.mean(0)
    assert (means.diff() > 0).all()
    assert means[0] < 0.13
    assert means[-1] > 0.7
    assert attention.max() < 0.3
    assert (one.amin(0) > attention.amax(0)).all()


def test_g2p_en_has_no_more_errors_at_8_letters_than_at_4():
    error = {row["letters"]: row["error"] for row in LONG["g2p"]["dictionary"]}
    assert error[8] <= error[4] < 0.1
    assert error[12] > 0.13


def test_the_middle_of_a_long_word_is_found_and_cannot_be_spelled():
    assert min(run["found"]["0.5"] for run in KEPT["g2p-en"]) > 0.85
    assert all(run["found"]["0.5"] == 0 for run in KEPT["untrained, of g2p-en's size"])
    for run in KEPT["g2p-en"]:
        named = run["named"]["35"]
        spelled = torch.tensor([*map(max, named["linear"], named["hidden"])])
        usual = torch.tensor(named["commonest"])
        assert (spelled - usual)[11:24].mean() < 0.04
        assert min(spelled[0], spelled[-1]) > 0.8


def test_64_numbers_carry_a_word_of_the_dictionary_as_well_as_256_and_16_do_not():
    wide, narrow, few = (share(f"256 through {n}") for n in (256, 64, 16))
    assert (wide - narrow).abs().max() < 0.03
    assert (wide - few)[5:11].min() > 0.08


def test_with_wide_states_attention_is_ahead_of_a_wide_vector_as_lesson_02_says():
    at = SIZES["lengths"].index(12)
    shares = [share(arm)[at].item() for arm in ("attention, 256", "one vector of 256")]
    assert [round(100 * x) for x in shares] == [42, 25]


def test_trained_on_joined_words_attention_keeps_its_place_to_the_end_of_the_long_word():
    assert ALIGNMENT["sounds"] == LONG["readers"]["attention, all and joined"][0]["heard"]
    places = torch.tensor(ALIGNMENT["weights"]).argmax(-1)
    assert (places.diff() > 0).all()
    assert places[-1] == len(ALIGNMENT["word"]), "the stop looks at the end"
