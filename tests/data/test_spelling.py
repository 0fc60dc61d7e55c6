"""Letters and sounds as numbers, and the dictionary where it is fetched."""

import itertools

import pytest
import torch

from course_lib.data import spelling, store
from course_lib.data.spelling import LETTERS, SOUNDS
from course_lib.seq2seq import PAD, START, STOP

dictionary = pytest.mark.skipif(
    not store.is_fetched("cmudict"), reason="needs CMUdict: run `course fetch cmudict`"
)


def test_decoding_gives_back_what_was_encoded_up_to_stop():
    assert LETTERS.decode([*LETTERS.encode("cat"), STOP, PAD]) == ["c", "a", "t"]
    assert len(LETTERS) == 3 + 26
    assert len(SOUNDS) == 3 + 70


def test_an_unknown_symbol_is_named():
    with pytest.raises(ValueError, match="'C' is not among the 26 symbols a b c"):
        LETTERS.encode("Cat")


def test_words_end_with_stop_and_sounds_also_begin_with_start():
    a, b = LETTERS.encode("ab")
    assert spelling.encode_words(["ab", "b"]).tolist() == [[a, b, STOP], [b, STOP, PAD]]
    (ah,) = SOUNDS.encode(["AH0"])
    assert spelling.encode_sounds([["AH0"]]).tolist() == [[START, ah, STOP]]


class Parrot:
    """Writes one sound a letter, AH0 for a and B for b."""

    def decode(self, source, limit):
        named = {PAD: PAD, STOP: STOP}
        named |= zip(LETTERS.encode("ab"), SOUNDS.encode(["AH0", "B"]), strict=True)
        return torch.tensor([[named[letter] for letter in row] for row in source.tolist()])


def test_a_word_is_right_if_it_equals_any_of_its_pronunciations():
    pairs = [
        ("ab", ("AH0", "B")),
        ("ba", ("B", "AA1")),
        ("ba", ("B", "AH0")),
        ("bb", ("B",)),
        ("abb", ("AH0", "B")),
    ]
    assert spelling.accuracy_by_length(Parrot(), pairs, [2, 3]) == [2 / 3, 0]
    with pytest.raises(ValueError, match="none of the 4 words has 5 letters"):
        spelling.accuracy_by_length(Parrot(), pairs, [5])


@dictionary
def test_the_dictionary_has_the_counts_that_the_lessons_cite():
    assert len(spelling.pairs()) == 135_166
    assert [sounds for word, sounds in spelling.pairs() if word == "tomato"] == [
        ("T", "AH0", "M", "EY1", "T", "OW2"),
        ("T", "AH0", "M", "AA1", "T", "OW2"),
    ]
    assert {sound for _, sounds in spelling.pairs() for sound in sounds} < set(SOUNDS.symbols)


@dictionary
def test_no_word_is_both_trained_on_and_held_out():
    learning, held_out = ({word for word, _ in side} for side in spelling.split())
    assert not learning & held_out
    assert len(learning | held_out) == 117_493
    assert len(held_out) / 117_493 == pytest.approx(0.1, abs=0.005)


@dictionary
def test_batches_pair_each_word_with_its_own_sounds():
    learning, _ = spelling.split()
    source, target = next(itertools.islice(spelling.batches(learning, 32, seed=0), 5, None))
    known = set(learning)
    for letters, sounds in zip(source.tolist(), target.tolist(), strict=True):
        assert sounds[0] == START
        pair = "".join(LETTERS.decode(letters)), tuple(SOUNDS.decode(sounds[1:]))
        assert pair in known
