"""What lesson 18 says of its stored runs."""

from statistics import mean

import pytest
import torch

from course_lib.data.verifiable import LEARNED_KINDS, OTHER_KINDS
from course_lib.instruments import answered, results
from course_lib.instruments.answered import share
from course_lib.reward import group_advantage

FIGURES = results.load("reward")["figures"]
RUNS = [run["after"] for name in ("GRPO", "rewarded alone") for run in FIGURES["arms"][name]]


def test_before_training_a_fifth_of_the_answers_is_rewarded_and_asking_brings_a_tenth_more():
    assert share(FIGURES["before"], LEARNED_KINDS) == pytest.approx(0.2, abs=0.01)
    assert share(FIGURES["asked for one word"], LEARNED_KINDS) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("after", RUNS)
def test_with_each_seed_four_fifths_of_the_learned_kinds_are_rewarded_and_few_others(after):
    assert share(after, LEARNED_KINDS) >= 0.8
    assert share(after, OTHER_KINDS) < 0.12


def test_with_each_seed_the_reward_of_the_last_steps_is_far_above_that_of_the_first():
    for run in FIGURES["arms"]["GRPO"]:
        rewards = [step["reward"] for step in run["seen"]]
        assert mean(rewards[-4:]) > mean(rewards[:2]) + 0.25


def test_a_reward_for_short_answers_alone_brings_most_of_the_gain():
    [run] = FIGURES["arms"]["short"]
    assert share(run["after"], LEARNED_KINDS) == pytest.approx(0.73, abs=0.005)


def test_before_training_no_answer_has_fewer_than_eight_tokens():
    assert min(length for x in FIGURES["before"] for length in x["lengths"]) == 8


def test_before_training_nearly_every_answer_that_ends_is_right():
    own = answered.of(FIGURES["before"], LEARNED_KINDS)
    right = [r for x in own for end, r in zip(x["ended"], x["right"], strict=True) if end]
    assert sum(right) / len(right) > 0.9


def test_four_examples_are_ahead_where_nobody_trained_and_training_where_it_was():
    shown = FIGURES["four examples"]
    assert share(shown, LEARNED_KINDS) < 0.6
    assert share(shown, OTHER_KINDS) > 0.3
    assert answered.parts(shown)["ended"] == 1


def test_answers_end_after_a_training_that_never_rewarded_an_end():
    [run] = FIGURES["arms"]["end left out"]
    assert answered.parts(FIGURES["before"])["ended"] < 0.25
    assert answered.parts(run["after"])["ended"] > 0.95


def test_of_eight_answers_one_nearly_always_names_the_word_before_training_and_after():
    assert answered.parts(FIGURES["before"])["1 of 8 named"] > 0.9
    assert all(answered.parts(run)["1 of 8 named"] == 1 for run in RUNS)


def test_the_clip_makes_no_difference_in_four_steps_on_a_draw():
    arms = FIGURES["arms"]
    clipped, free = (
        share(arms[f"four steps a draw{x}"][0]["after"], LEARNED_KINDS) for x in ("", ", no clip")
    )
    assert clipped == pytest.approx(free, abs=0.05)


def test_with_half_a_reward_for_the_right_word_without_an_end_no_baseline_is_needed_either():
    [run] = results.load("reward_controls")["figures"]["arms"]["rewarded alone, half paid"]
    assert share(run["after"], LEARNED_KINDS) > 0.8
    assert answered.parts(run["after"])["ended"] > 0.95


def test_with_a_constant_in_the_rewards_and_no_baseline_less_is_right_than_before_training():
    [run] = results.load("reward_controls")["figures"]["arms"]["rewarded alone, 5 added"]
    assert share(run["after"], LEARNED_KINDS) < 0.5 * share(FIGURES["before"], LEARNED_KINDS)
    rewards = torch.tensor([0.0, 0, 1, 0])
    torch.testing.assert_close(
        group_advantage(rewards + 5), group_advantage(rewards), atol=1e-4, rtol=0
    )


def test_direct_preference_optimization_stays_behind_with_each_seed():
    best = max(share(run["after"], LEARNED_KINDS) for run in FIGURES["arms"]["DPO"])
    assert best < min(share(run, LEARNED_KINDS) for run in RUNS) - 0.15
