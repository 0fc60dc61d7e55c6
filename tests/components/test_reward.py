"""Learning from reward: what a baseline, a clip and a vote must do, beside their naive twins."""

import inspect
from itertools import combinations

import pytest
import torch

from course_lib.reward import (
    answer_tokens,
    group_advantage,
    pass_at_k,
    policy_loss,
    preference_loss,
    vote,
)


@pytest.mark.parametrize(
    ("n", "c", "k", "said"),
    [(4, 5, 1, "c is 5"), (4, -1, 1, "c is -1"), (4, 1, 5, "k is 5"), (4, 1, 0, "k is 0")],
)
def test_what_cannot_have_been_drawn_is_refused(n, c, k, said):
    with pytest.raises(ValueError, match=said):
        pass_at_k(n, c, k)


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_is_what_counting_all_choices_gives(n):
    for c in range(n + 1):
        for k in range(1, n + 1):
            draws = list(combinations([True] * c + [False] * (n - c), k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_a_group_of_one_is_refused():
    with pytest.raises(ValueError, match="two answers at least, but got 1"):
        inspect.unwrap(group_advantage)(torch.ones(3, 1))


def test_a_vote_goes_to_the_commonest_then_to_the_first_and_never_to_nothing():
    assert vote(["b", "a", "a", None, None, None]) == "a"
    assert vote(["b", "a", "a", "b"]) == "b"
    assert vote([None, None]) is None
    assert vote([]) is None


def test_advantages_have_no_gradient():
    assert not group_advantage(torch.randn(2, 3, requires_grad=True)).requires_grad


def test_one_step_on_fresh_answers_has_the_gradient_of_the_log_probability():
    new = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    advantages, mask = torch.tensor([1.0, -2.0, 0.5]).double(), torch.rand(3, 4) < 0.8
    mask[0, 0] = True
    clipped = torch.autograd.grad(policy_loss(new, new.detach(), advantages, mask), new)[0]
    plain = torch.autograd.grad(-(advantages[:, None] * new)[mask].mean(), new)[0]
    assert torch.allclose(clipped, plain)


def test_a_baseline_leaves_the_policy_gradient_as_it_is_on_average():
    scores = torch.randn(6, dtype=torch.float64, requires_grad=True)
    rewards = torch.randn(6, dtype=torch.float64)
    chances = scores.detach().softmax(-1)

    def gradient(baseline):
        # the expectation over all six answers, each by its chance
        expected = (chances * (rewards - baseline) * scores.log_softmax(-1)).sum()
        return torch.autograd.grad(expected, scores)[0]

    assert torch.allclose(gradient(0.0), gradient(7.0))
    assert gradient(0.0).abs().max() > 0.01


def test_the_two_roads_meet_a_reward_of_log_ratios_makes_the_loss_of_dpo():
    from course_lib import dpo

    now, then = torch.randn(2, 5), torch.randn(2, 5)
    direct = dpo.preference_loss(now[0], now[1], then[0], then[1], 0.3)
    assert torch.allclose(direct, preference_loss(*(0.3 * (now - then))))


def test_the_end_of_an_answer_is_the_answers_and_its_padding_is_not():
    drawn = torch.tensor([[5, 2, 2], [2, 5, 2], [5, 5, 5]])
    assert answer_tokens(drawn, 2).sum(-1).tolist() == [2, 1, 3]
