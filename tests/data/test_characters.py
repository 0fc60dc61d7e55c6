"""Characters become numbers and come back, and every target is the next input."""

import pytest
import torch

from course_lib.data import characters, store

fetched = pytest.mark.skipif(
    not store.is_fetched("shakespeare"), reason="needs Shakespeare: run `course fetch shakespeare`"
)


@fetched
def test_a_text_comes_back_from_its_numbers():
    text = "Who's there?\n"
    assert characters.decode(characters.encode(text)) == text


@fetched
def test_an_unknown_character_is_named():
    with pytest.raises(ValueError, match="'é' is not among the 84 characters"):
        characters.encode("café")


@fetched
def test_learning_and_held_out_text_make_the_whole():
    learning, held_out = characters.split()
    assert len(learning) + len(held_out) == 5_057_239
    assert 0.09 < len(held_out) / (len(learning) + len(held_out)) < 0.11


def test_each_target_is_the_next_input_and_a_seed_decides_the_batch():
    tokens = torch.arange(100)
    inputs, targets = next(characters.batches(tokens, n=7, size=3, seed=0))
    assert inputs.shape == (3, 7)
    assert torch.equal(targets, inputs + 1)
    again, _ = next(characters.batches(tokens, n=7, size=3, seed=0))
    assert torch.equal(inputs, again)


def test_a_text_shorter_than_a_stretch_is_refused():
    with pytest.raises(ValueError, match="need 8 tokens, not 7"):
        next(characters.batches(torch.arange(7), n=7, size=1, seed=0))
