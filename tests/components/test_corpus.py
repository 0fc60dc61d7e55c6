"""Cleaning a corpus: shingles, and how likeness is estimated."""

import inspect

import pytest
import torch

from course_lib.corpus import PRIME, jaccard, min_hash, shingle


def test_shingles_are_runs_of_words_each_once_whatever_their_case_and_blanks():
    assert shingle("a b c a b c", 3).equal(shingle("A  b\nc a B c", 3))
    assert len(shingle("a b c a b c", 3)) == 3
    assert len(shingle("too short", 5)) == 1
    assert len(shingle("", 5)) == 1
    assert shingle("one two three four", 2).max() < PRIME


def test_likeness_is_what_is_shared_over_what_there_is():
    one, other = torch.tensor([1, 2, 3]), torch.tensor([3, 4])
    assert jaccard(one, other) == 1 / 4
    assert jaccard(one, one) == 1
    assert jaccard(one, torch.tensor([9])) == 0


def test_signatures_estimate_the_likeness_of_real_sentences():
    words = [f"word{i}" for i in range(300)]
    one, other = " ".join(words[:200]), " ".join(words[50:])
    sets = shingle(one, 3), shingle(other, 3)
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randint(1, PRIME, (2, 2000), generator=generator)
    equal = (min_hash(sets[0], a, b, PRIME) == min_hash(sets[1], a, b, PRIME)).double().mean()
    assert equal.item() == pytest.approx(jaccard(*sets), abs=0.04)


def test_a_set_without_members_is_refused_in_one_sentence():
    nothing, one = torch.empty(0, dtype=torch.long), torch.tensor([1])
    with pytest.raises(ValueError, match="text shorter than one shingle"):
        inspect.unwrap(min_hash)(nothing, one, one, 7)
