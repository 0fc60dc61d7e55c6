"""What lesson 11 says of its stored searches."""

from course_lib.instruments import results

WIDTHS = results.load("translation")["figures"]["duel"]["widths"]


def test_a_wider_beam_finds_likelier_and_shorter_texts_and_up_to_four_better_ones():
    one, two, four, sixteen = (WIDTHS[x] for x in ("1", "2", "4", "16"))
    rising = [x["log_probability"] for x in (one, two, four, sixteen)]
    assert rising == sorted(rising)
    assert sixteen["tokens"] < 0.93 * one["tokens"]
    assert one["bleu"] + 1.5 < four["bleu"] < sixteen["bleu"] + 0.3
