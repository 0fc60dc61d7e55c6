"""What holds of `course_lib.corpus`."""

import inspect

import pytest
import torch

from course_lib.corpus import (
    PRIME,
    NGrams,
    continuations,
    cross_fitted,
    discounts,
    jaccard,
    min_hash,
    occurrences,
    shingle,
)


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


def text(n, vocab=5, seed=0):
    """Draw a text in which the next token depends on the last."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(2, (n,), generator=generator) * torch.randint(
        3, (n,), generator=generator
    )
    return steps.cumsum(0) % vocab


@pytest.mark.parametrize("count", [continuations, occurrences])
@pytest.mark.parametrize("order", [1, 2, 5])
def test_each_row_sums_to_one_and_none_is_zero(order, count):
    found = NGrams(text(300), 5, order, count).probabilities(text(200, seed=1).view(4, 50))
    assert found.shape == (4, 50, 5)
    torch.testing.assert_close(found.sum(-1), torch.ones(4, 50))
    assert found.min() > 0


def test_a_row_does_not_depend_on_what_comes_later():
    counts, asked = NGrams(text(300), 5, 4), text(60, seed=1)
    changed = asked.clone()
    changed[40:] = 4 - changed[40:]
    torch.testing.assert_close(counts.probabilities(asked)[:40], counts.probabilities(changed)[:40])


def test_a_token_with_one_left_neighbour_is_a_poor_guess_elsewhere():
    # 3 follows 2 alone, but often; 1 follows 0, 1 and 4; nothing has followed 5
    tokens = torch.tensor([2, 3] * 20 + [0, 1, 4, 1, 1, 0, 1, 4, 1, 0])
    plain, kneser_ney = (
        NGrams(tokens, 6, 2, count).probabilities(torch.tensor([5]))[0]
        for count in (occurrences, continuations)
    )
    assert plain[3] > plain[1]
    assert kneser_ney[3] < kneser_ney[1]


def test_counts_predict_their_own_text_better_than_they_predict_another():
    tokens = text(400)
    targets = tokens[1:].unsqueeze(-1)
    own = NGrams(tokens, 5, 6).probabilities(tokens)[:-1].gather(-1, targets).log().mean()
    crossed = cross_fitted(tokens, 5, 6)[:-1].gather(-1, targets).log().mean()
    assert own > crossed + 0.2


def test_a_fold_is_predicted_by_the_counts_of_the_others():
    tokens = text(100)
    others = NGrams(torch.cat([tokens[:50], tokens[75:]]), 5, 3)
    torch.testing.assert_close(
        cross_fitted(tokens, 5, 3, folds=4)[50:75], others.probabilities(tokens)[50:75]
    )


def test_with_too_few_counts_half_a_count_is_taken_off():
    torch.testing.assert_close(discounts(torch.tensor([7])), torch.tensor([0.0, 0.5, 0.5, 0.5]))


@pytest.mark.parametrize("order", [0, 40])
def test_an_order_that_cannot_be_numbered_is_refused(order):
    with pytest.raises(ValueError, match="from 1 to 27 tokens"):
        NGrams(text(300), 5, order)


def test_too_short_a_text_is_refused():
    with pytest.raises(ValueError, match="longer text than 4 tokens"):
        NGrams(text(4), 5, 4)


def test_one_fold_is_refused():
    with pytest.raises(ValueError, match="at least 2, not 1"):
        inspect.unwrap(cross_fitted)(text(50), 5, 3, folds=1)
