"""What holds of `course_lib.beyond`."""

import inspect
import itertools

import pytest
import torch

from course_lib import beyond
from course_lib.beyond import VisionTransformer, accept, speculate

patches = inspect.unwrap(beyond.patches)


def test_patches_that_do_not_fill_the_image_are_refused():
    with pytest.raises(ValueError, match="patches of 3 x 3 pixels do not fill an image of 4 x 6"):
        patches(torch.zeros(1, 4, 6), 3)
    with pytest.raises(ValueError, match="patches of 0 x 0"):
        patches(torch.zeros(1, 4, 6), 0)
    with pytest.raises(ValueError, match="do not fill an image of 8 x 8"):
        VisionTransformer(10, 1, 8, 3, 1, 4, 2, 8)


def test_an_image_of_another_size_is_refused():
    model = VisionTransformer(10, 1, 8, 2, 1, 4, 2, 8)
    with pytest.raises(ValueError, match="the positions are those of 8 x 8 pixels"):
        model(torch.zeros(1, 4, 4))


VOCAB, NEW, TEXTS = 3, 3, 3000


def transitions(seed):
    """Draw the next token's distribution after each token."""
    generator = torch.Generator().manual_seed(seed)
    return (0.5 * torch.randn(VOCAB, VOCAB, generator=generator)).softmax(-1)


LARGE, SMALL = transitions(0), transitions(1)


def score(text, rows):
    return LARGE[text[-rows:]]


def draft_by(table):
    """Let a table of transitions draft, from a generator of its own."""
    generator = torch.Generator().manual_seed(5)

    def draft(text, most):
        tokens, rows = [], []
        for _ in range(most):
            rows.append(table[[text[-1], *tokens][-1]])
            tokens.append(int(torch.multinomial(rows[-1], 1, generator=generator)))
        return torch.tensor(tokens).long(), torch.stack(rows) if rows else torch.zeros(0, VOCAB)

    return draft


def chi_square(table):
    """Return how far the texts that were written are from the large model's distribution."""
    draft, counts = draft_by(table), torch.zeros([VOCAB] * NEW)
    for seed in range(TEXTS):
        text, _ = speculate(score, draft, [0], NEW, ahead=2, seed=seed)
        counts[tuple(text[1:])] += 1
    expected = torch.zeros([VOCAB] * NEW)
    for text in itertools.product(range(VOCAB), repeat=NEW):
        steps = itertools.pairwise([0, *text])
        expected[text] = TEXTS * torch.stack([LARGE[a, b] for a, b in steps]).prod()
    assert expected.min() > 5, "too few texts for this statistic"
    return ((counts - expected) ** 2 / expected).sum().item()


# 26 degrees of freedom: above 54.05 in one of a thousand draws
LIMIT = 54.05


def test_the_texts_are_distributed_as_the_large_models_own():
    assert chi_square(SMALL) < LIMIT
    assert chi_square(LARGE) < LIMIT


def test_this_statistic_would_see_the_drafts_distribution(monkeypatch):
    def accept_all(drafted, draft, target, uniform):
        return len(drafted), target[len(drafted)]

    monkeypatch.setattr("course_lib.beyond.accept", accept_all)
    assert chi_square(SMALL) > 10 * LIMIT


def test_one_token_has_the_targets_probability_exactly():
    draft, target = SMALL[0].double(), LARGE[0].double()
    total = torch.zeros(VOCAB, dtype=torch.float64)
    for token in range(VOCAB):
        pass_below = min(1.0, (target[token] / draft[token]).item())
        _, rest = accept(
            torch.tensor([token]), draft[None], torch.stack([target, target]), torch.tensor([2.0])
        )
        total[token] += draft[token] * pass_below
        # a token that is never refused leaves nothing to draw
        if pass_below < 1:
            total += draft[token] * (1 - pass_below) * rest
    assert torch.allclose(total, target, atol=1e-12)


def test_a_target_that_is_certain_is_followed_token_for_token():
    chain = torch.eye(VOCAB)[[1, 2, 0]]
    text, rounds = speculate(
        lambda text, rows: chain[text[-rows:]], draft_by(chain), [0], new=9, ahead=4, seed=0
    )
    assert text == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert rounds == 2
    # a draft that is always wrong costs rounds and changes nothing
    wrong = torch.eye(VOCAB)[[2, 0, 1]]
    text, rounds = speculate(
        lambda text, rows: chain[text[-rows:]], draft_by(wrong), [0], new=9, ahead=4, seed=0
    )
    assert text == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert rounds == 9
