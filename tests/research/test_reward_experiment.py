"""What lesson 18 says of its stored runs."""

import pytest

from course_lib.data.verifiable import LEARNED_KINDS, OTHER_KINDS
from course_lib.instruments import results
from research.experiments.reward import share

FIGURES = results.load("reward")["figures"]
RUNS = [run["after"] for name in ("GRPO", "rewarded alone") for run in FIGURES["arms"][name]]


def test_before_training_a_fifth_of_the_answers_is_rewarded_and_asking_brings_a_tenth_more():
    assert share(FIGURES["before"], LEARNED_KINDS) == pytest.approx(0.2, abs=0.01)
    assert share(FIGURES["asked for one word"], LEARNED_KINDS) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("after", RUNS)
def test_with_each_seed_four_fifths_of_the_learned_kinds_are_rewarded_and_few_others(after):
    assert share(after, LEARNED_KINDS) >= 0.8
    assert share(after, OTHER_KINDS) < 0.12


def test_a_reward_for_short_answers_alone_brings_most_of_the_gain():
    [run] = FIGURES["arms"]["short"]
    assert share(run["after"], LEARNED_KINDS) == pytest.approx(0.73, abs=0.005)


def test_before_training_no_answer_has_fewer_than_eight_tokens():
    assert min(length for x in FIGURES["before"] for length in x["lengths"]) == 8
