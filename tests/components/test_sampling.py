"""Sampling: what is drawn follows the probabilities, and bad settings are refused."""

import inspect

import pytest
import torch

from course_lib.sampling import generate, temper, top_k, top_p


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def counting(tokens):
    """Stand in for a model: after token t, t + 1 is near certain, modulo 10."""
    following = (tokens + 1) % 10
    return 50.0 * torch.nn.functional.one_hot(following, 10).float()


def test_writing_keeps_the_prompt_and_follows_the_model():
    written = generate(counting, torch.tensor([3, 4]), 5, 8, generator())
    assert written.tolist() == [3, 4, 5, 6, 7, 8, 9]


def test_the_model_reads_no_more_than_it_has_room_for():
    lengths = []

    def model(tokens):
        lengths.append(len(tokens))
        return counting(tokens)

    generate(model, torch.tensor([0, 1, 2]), 6, 4, generator())
    assert lengths == [3, 4, 4, 4, 4, 4]


def test_draws_follow_the_probabilities_and_a_seed_repeats_them():
    logits = torch.tensor([0.5, 0.3, 0.2]).log()

    def model(tokens):
        return logits.expand(len(tokens), 3)

    one, again = (generate(model, torch.tensor([0]), 3000, 1, generator()) for _ in range(2))
    assert torch.equal(one, again)
    shares = torch.bincount(one[1:], minlength=3) / 3000
    torch.testing.assert_close(shares, logits.exp(), atol=0.03, rtol=0)
    only = generate(model, torch.tensor([0]), 50, 1, generator(), lambda z: top_k(z, 1))
    assert not only.any()


@pytest.mark.parametrize("temperature", [0, -1, float("nan")])
def test_a_temperature_that_is_not_positive_is_refused(temperature):
    with pytest.raises(ValueError, match=r"must be positive.*argmax for the limit 0"):
        inspect.unwrap(temper)(torch.zeros(3), temperature)


def test_what_cannot_be_sampled_from_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="this one is empty"):
        generate(counting, torch.empty(0, dtype=torch.long), 5, 4, generator())
    with pytest.raises(ValueError, match="k must be 1 or more, not 0"):
        inspect.unwrap(top_k)(torch.zeros(3), 0)
    for p in (0, -0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match=f"at most 1, not {p}"):
            inspect.unwrap(top_p)(torch.zeros(3), p)
