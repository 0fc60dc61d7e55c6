"""What a program may judge, and what it must not take for right."""

import pytest

from course_lib.data.verifiable import KINDS, LEARNED_KINDS, is_right, questions, split


@pytest.mark.parametrize(
    ("answer", "word", "right"),
    [
        ("The capital of Norway is Oslo.", "Oslo", True),
        ("oslo", "Oslo", True),
        ("3 plus 5 is 18", "8", False),
        ("There are 7 days.", "seven", True),
        ("There are 17 days.", "seven", False),
        ("The plural is boxes.", "box", False),
        ("", "Oslo", False),
    ],
)
def test_a_word_is_right_only_where_it_stands_alone(answer, word, right):
    assert is_right(answer, word) == right


def test_no_question_is_both_learned_and_tested_and_two_kinds_are_never_learned():
    learning, testing = split(4, 0)
    assert not {x.asked for x in learning} & {x.asked for x in testing}
    assert {x.kind for x in learning} == {*LEARNED_KINDS} < {*KINDS}
    assert [x.kind for x in testing] == [kind for kind in KINDS for _ in range(4)]


def test_each_question_is_asked_once():
    assert len({x.asked for x in questions()}) == len(questions())
