"""Pairs as tokens and batches, and a tiny model that translates."""

from itertools import islice

import pytest
import torch

from course_lib.data import translating
from course_lib.data.translating import PAD, START, STOP
from course_lib.masks import shift_right
from course_lib.transformer import Transformer

PAIRS = [("the house is red", "das Haus ist rot"), ("a cat", "eine Katze"), ("yes, too!", "ja!")]


@pytest.fixture(scope="module")
def pieces():
    return translating.learn_pieces([text for pair in PAIRS for text in pair], 290)


@pytest.fixture(scope="module")
def model(pieces):
    torch.manual_seed(0)
    return Transformer(pieces.get_vocab_size(), 1, 8, 2, 16, 80, norm="pre").eval()


def test_any_text_becomes_tokens_and_comes_back(pieces):
    texts = ["the red cat", "Übergröße, 25 °C", "日本"]
    tokens = translating.encode(pieces, texts)
    assert all(row[-1] == STOP and PAD not in row and START not in row for row in tokens)
    assert [translating.decode(pieces, [*row, 5, 6]) for row in tokens] == texts


def test_a_batch_has_its_padding_masked(pieces):
    source, target, mask = translating.stack(translating.examples(pieces, PAIRS))
    assert torch.equal(mask.squeeze(1), source != PAD)
    assert (target == STOP).sum() == len(PAIRS)
    with pytest.raises(ValueError, match="a batch needs at least one pair"):
        translating.stack([])


def test_batches_hold_no_more_tokens_than_allowed_and_every_pair_once_a_pass(pieces):
    some = translating.examples(pieces, PAIRS * 5)
    most = 2 * max(len(side) for pair in some for side in pair)
    seen, passes = [], translating.batches(some, most, seed=0)
    while len(seen) < len(some):
        source, target, _ = next(passes)
        assert max(source.numel(), target.numel()) <= most
        seen += [tuple(x for x in row if x != PAD) for row in source.tolist()]
    assert sorted(seen) == sorted(tuple(source) for source, _ in some)
    first, again = (list(islice(translating.batches(some, most, seed=3), 5)) for _ in range(2))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(first, again, strict=True))


def test_the_loss_is_that_of_the_real_target_tokens(pieces, model):
    batch = translating.stack(translating.examples(pieces, PAIRS))
    source, target, mask = batch
    logits = model(source, shift_right(target, START), mask)
    real = target != PAD
    expected = torch.nn.functional.cross_entropy(logits[real], target[real], label_smoothing=0.1)
    assert torch.isclose(translating.next_token_loss(model, batch, 0.1), expected)


def test_a_beam_of_one_translates_greedily_and_padding_changes_nothing(pieces, model):
    texts = [source for source, _ in PAIRS]
    together = translating.translate(model, pieces, texts)
    alone = [translating.translate(model, pieces, [text])[0] for text in texts]
    assert together == alone == translating.translate_by_beam(model, pieces, texts, width=1)


def test_an_alignment_has_a_row_for_each_target_token(pieces, model):
    weights = translating.alignment(model, pieces, *PAIRS[0])
    read, written = translating.encode(pieces, PAIRS[0])
    assert weights.shape == (1, len(written), len(read))
    assert torch.allclose(weights.sum(-1), torch.ones(1, len(written)))
