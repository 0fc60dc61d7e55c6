"""The trees are trees, and stretches ask each word for the right one."""

import pytest
import torch

from course_lib.data import trees
from course_lib.positions import tree_distance

SMALL = """\
# a comment
# newdoc id = one

1	Look	_	VERB	_	_	0	root	_	_
2	here	_	ADV	_	_	1	advmod	_	_

# newdoc id = two
1	She	_	PRON	_	_	2	nsubj	_	_
2	left	_	VERB	_	_	0	root	_	_
3	Rome	_	PROPN	_	_	2	dobj	_	_

1	look	_	VERB	_	_	0	root	_	_
"""


def small_text():
    sentences = [sentence for document in trees.parse(SMALL).values() for sentence in document]
    vocab = trees.vocab(sentences)
    return trees.join(sentences, vocab), vocab


def test_sentences_are_read_into_their_documents():
    found = trees.parse(SMALL)
    assert {name: len(sentences) for name, sentences in found.items()} == {"one": 1, "two": 2}
    [left, _] = found["two"]
    assert left.words == ["She", "left", "Rome"]
    assert left.heads.tolist() == [1, -1, 1]
    assert left.labels == ["nsubj", "root", "dobj"]


def test_every_sentence_that_comes_with_the_course_is_a_tree():
    found = trees.documents()
    assert list(found) == ["own", "Julius Caesar, act III", "Julius Caesar, act IV"]
    for sentences in found.values():
        for sentence in sentences:
            distance = tree_distance(sentence.heads)
            assert distance.equal(distance.T)
            assert len(sentence.words) == len(sentence.labels) == len(distance)


def test_sentences_end_to_end_keep_their_heads_and_stay_far_apart():
    text, vocab = small_text()
    assert vocab == ["here", "left", "look", "rome", "she"]
    assert text.words.tolist() == [2, 0, 4, 1, 3, 2]
    assert text.before.tolist() == [-1, 0, 1, 2, 3, 4]
    assert text.heads.tolist() == [-1, 0, 3, -1, 3, -1]
    assert text.distances[2, :].tolist() == [trees.FAR, trees.FAR, 0, 1, 2, trees.FAR]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("before", [[-1, 0, 4], [-1, 4, 1]]), ("heads", [[-1, 1, -1], [1, -1, 1]])],
)
def test_words_that_are_not_in_the_stretch_are_not_wanted(wanted, expected):
    text, _ = small_text()
    starts = torch.tensor([1, 2])
    words, tree, found = trees.stretches(text, getattr(text, wanted), starts, 3)
    assert words.tolist() == [[0, 4, 1], [4, 1, 3]]
    assert tree[1].tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert found.tolist() == expected


def test_a_seed_decides_the_batch():
    text, _ = small_text()
    first, again = (next(trees.batches(text, text.before, 3, 5, seed=7)) for _ in range(2))
    assert first[0].shape == (5, 3)
    assert all(one.equal(other) for one, other in zip(first, again, strict=True))
