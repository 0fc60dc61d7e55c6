"""The laws of texts that begin again, of the scores of heads, and of heads taken out."""

import torch
from torch.testing import assert_close

from course_lib.instruments.attention_only import (
    AttentionOnly,
    induction_score,
    previous_token_score,
    repeated,
)


def test_each_letter_of_a_text_returns_after_the_period():
    tokens, periods = next(repeated(8))
    for text, period in zip(tokens, periods.tolist(), strict=True):
        assert text[:period].unique().numel() == period
        assert_close(text[period:], text[:-period])


def test_shuffled_texts_have_the_same_letters_in_another_order():
    tokens, periods = next(repeated(8, shuffled=True))
    for text, period in zip(tokens, periods.tolist(), strict=True):
        assert set(text[period : 2 * period].tolist()) == set(text[:period].tolist())
        assert not torch.equal(text[period : 2 * period], text[:period])


def test_a_head_on_the_token_before_scores_one():
    before = torch.eye(4).roll(-1, dims=-1).tril()
    assert_close(previous_token_score(before.expand(2, 1, 4, 4)), torch.ones(1))


def test_a_head_on_what_followed_the_same_token_scores_one():
    tokens = torch.tensor([[0, 1, 2, 0, 1, 2]])
    weights = torch.eye(6)
    weights[3:] = torch.eye(6)[1:4]
    assert_close(induction_score(weights.expand(1, 1, 6, 6), tokens), torch.ones(1))
    assert_close(induction_score(torch.eye(6).expand(1, 1, 6, 6), tokens), torch.zeros(1))


def test_without_all_heads_the_stream_stays_as_it_was_embedded():
    model = AttentionOnly(2, 2)
    tokens = next(repeated(2))[0]
    streams = model.streams(tokens, [(0, 0), (0, 1), (1, 0), (1, 1)])
    assert_close(streams[-1], streams[0])
