"""What of kept answers is right: counted by hand."""

import pytest

from course_lib.data.verifiable import LEARNED_KINDS
from course_lib.instruments import answered

FOUND = [
    {
        "kind": "opposites",
        "asked": "What is the opposite of hot?",
        "texts": ["cold", "cold and", "warm", "warm"],
        "ended": [True, False, True, True],
        "right": [1.0, 0.0, 0.0, 0.0],
    },
    {
        "kind": "capitals",
        "asked": "What is the capital of France?",
        "texts": ["Paris", "Paris", "Rome", "Paris is"],
        "ended": [True, True, True, False],
        "right": [1.0, 1.0, 0.0, 0.0],
    },
]


def test_an_answer_lacks_the_word_or_the_end():
    assert answered.parts(FOUND) == {
        "named": 5 / 8,
        "1 of 8 named": 1.0,
        "ended": 6 / 8,
        "rewarded": 3 / 8,
    }


def test_pass_at_k_is_averaged_over_questions():
    assert answered.share(FOUND, LEARNED_KINDS) == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert answered.share(FOUND, LEARNED_KINDS, 2) == pytest.approx((1 / 2 + 5 / 6) / 2)


def test_answers_without_an_end_have_no_vote():
    # warm, warm against cold; Paris, Paris against Rome
    assert answered.voted(FOUND, LEARNED_KINDS) == 1 / 2


def test_scores_order_pairs_of_one_question_and_choose_the_best():
    lines = [*answered.told_apart(FOUND, [[3.0, 4.0, 2.0, 1.0], [1.0, 5.0, 0.0, 2.0]])]
    assert lines[0] == "of 7 pairs of right and wrong, 5 in the right order"
    assert [int(line.split()[0]) for line in lines[2:]] == [2, 1, 2, 2]


def test_a_table_has_means_over_seeds():
    heading, row = answered.table({"a way": [FOUND, FOUND[:1]]})
    assert heading.split()[-1] == "seeds"
    assert row.split()[2:] == ["56%", "75%", "31%", "2"]
