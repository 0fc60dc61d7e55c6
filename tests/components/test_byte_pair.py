"""Byte pairs: what exercises do not ask, spelling tokens and getting texts back."""

import random

import pytest

from course_lib.byte_pair import decode, encode, pieces, train


def test_any_text_comes_back_from_its_tokens():
    draw = random.Random(0)
    merges = train(list(("the other mother " * 9).encode()), 30)
    for _ in range(50):
        text = "".join(draw.choice("theomr é∞\n𝔸") for _ in range(draw.randint(0, 30)))
        assert decode(encode(list(text.encode()), merges), merges) == text


def test_a_piece_is_what_its_two_halves_spell():
    merges = train(list(b"banana banana"), 9)
    spelled = pieces(merges)
    assert len(spelled) == 256 + len(merges)
    for i, (left, right) in enumerate(merges):
        assert spelled[256 + i] == spelled[left] + spelled[right]


def test_half_a_letter_is_shown_as_lost_and_an_unknown_token_is_named():
    assert decode([0xC3], []) == "\ufffd"
    with pytest.raises(ValueError, match="token 300 is not among the 257"):
        decode([97, 300], [(97, 98)])
    with pytest.raises(ValueError, match="token -1"):
        decode([-1], [])
