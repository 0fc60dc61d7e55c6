"""What lesson 18 says of its stored runs."""

from statistics import mean

import pytest
import torch

from course_lib.data.verifiable import LEARNED_KINDS, OTHER_KINDS
from course_lib.instruments import answered, results
from course_lib.instruments.answered import share
from course_lib.reward import group_advantage

FIGURES = results.load("reward")["figures"]
CONTROLS = results.load("reward_controls")["figures"]["arms"]
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


def test_a_reward_for_short_answers_alone_brings_most_of_the_gain_or_silence():
    found = [share(run["after"], LEARNED_KINDS) for run in FIGURES["arms"]["short"]]
    assert found == [pytest.approx(0.73, abs=0.005), pytest.approx(0.83, abs=0.005), 0]
    assert {x for each in FIGURES["arms"]["short"][2]["after"] for x in each["texts"]} == {""}


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
    assert answered.parts(FIGURES["before"])["ended"] < 0.25
    for run in FIGURES["arms"]["end left out"]:
        assert answered.parts(run["after"])["ended"] > 0.95


def test_of_eight_answers_one_nearly_always_names_the_word_before_training_and_after():
    assert answered.parts(FIGURES["before"])["1 of 8 named"] > 0.9
    assert all(answered.parts(run)["1 of 8 named"] == 1 for run in RUNS)


def test_four_steps_on_a_draw_learn_less_than_one_and_least_without_the_clip():
    found = {
        name: [round(100 * share(run["after"], LEARNED_KINDS)) for run in FIGURES["arms"][name]]
        for name in ("GRPO", "four steps a draw", "four steps a draw, no clip")
    }
    assert [*found.values()] == [[84, 88, 80], [77, 60, 68], [81, 40, 55]]


def test_with_two_threads_each_arm_ends_where_it_does_with_one():
    for name, run in FIGURES["two threads"].items():
        alone = share(FIGURES["arms"][name][0]["after"], LEARNED_KINDS)
        assert share(run["after"], LEARNED_KINDS) == alone


def test_with_half_a_reward_for_the_right_word_without_an_end_no_baseline_is_needed_either():
    found = [run["after"] for run in CONTROLS["rewarded alone, half paid"]]
    assert all(share(after, LEARNED_KINDS) > 0.8 for after in found)
    ended = [answered.parts(after)["ended"] for after in found]
    assert ended[0] > 0.95
    assert mean(ended) > 0.95


def test_with_a_constant_in_the_rewards_and_no_baseline_chance_decides_what_is_learned():
    found = [share(run["after"], LEARNED_KINDS) for run in CONTROLS["rewarded alone, 5 added"]]
    assert [round(100 * x) for x in found] == [7, 29, 75]
    rewards = torch.tensor([0.0, 0, 1, 0])
    torch.testing.assert_close(
        group_advantage(rewards + 5), group_advantage(rewards), atol=1e-4, rtol=0
    )


def test_direct_preference_optimization_stays_behind_with_each_seed():
    best = max(share(run["after"], LEARNED_KINDS) for run in FIGURES["arms"]["DPO"])
    assert best < min(share(run, LEARNED_KINDS) for run in RUNS) - 0.15
