"""What lesson 15 says of its stored runs."""

from statistics import mean

import pytest

from course_lib.instruments import results
from research.experiments.one_equation import SEEDS

FIGURES = results.load("one_equation")["figures"]
ARMS = {(*arm["layers"], arm["d_k"]): arm for arm in FIGURES["arms"]}


def recalled(*layers, d_k, steps=300):
    return ARMS[(*layers, d_k)]["recalled"][str(steps)]


def twice(name, steps):
    return recalled(name, name, d_k=8, steps=steps)


@pytest.mark.parametrize("steps", [150, 300])
def test_at_few_steps_every_seed_that_erases_is_ahead(steps):
    assert min(twice("delta rule", steps)) > max(twice("linear attention", steps)) + 0.15


def test_after_1200_steps_linear_attention_is_within_five_points():
    assert 0 < mean(twice("delta rule", 1200)) - mean(twice("linear attention", 1200)) < 0.05


def test_what_the_delta_rule_knows_after_300_steps_takes_linear_attention_four_times_as_many():
    slow = mean(twice("linear attention", 1200))
    assert mean(twice("delta rule", 300)) == pytest.approx(slow, abs=0.03)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_keys_of_two_dimensions_one_layer_of_attention_is_enough_and_memories_are_not(seed):
    two_memories = recalled("delta rule", "delta rule", d_k=2, steps=1200)[seed]
    for other in ("delta rule", "attention", "own token"):
        assert recalled(other, "attention", d_k=2)[seed] > two_memories + 0.15


@pytest.mark.parametrize("seed", SEEDS)
def test_a_memory_below_attention_recalls_no_more_than_a_layer_that_mixes_nothing(seed):
    nothing = recalled("own token", "attention", d_k=2)[seed]
    assert nothing > recalled("delta rule", "attention", d_k=2)[seed] - 0.02


@pytest.mark.parametrize("arm", FIGURES["arms"], ids=lambda arm: f"{arm['layers']} {arm['d_k']}")
def test_both_neighbours_of_a_chosen_learning_rate_are_worse(arm):
    swept = {float(rate): share for rate, share in arm["swept"].items()}
    best = arm["rate"]
    assert swept[best] > max(swept[best / 2], swept[2 * best])
