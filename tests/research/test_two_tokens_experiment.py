"""What lesson 15 says of its stored runs with keys and values as tokens of their own."""

import pytest

from course_lib.instruments import results
from research.experiments.two_tokens import HYBRID, RATES, SEEDS

ARMS = {tuple(arm["layers"]): arm for arm in results.load("two_tokens")["figures"]["arms"]}
OTHERS = [layers for layers in ARMS if layers != HYBRID]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layers", OTHERS)
def test_with_each_seed_the_hybrid_recalls_and_the_others_stay_far_behind(layers, seed):
    hybrid = ARMS[HYBRID]["recalled"][seed]
    assert hybrid > 0.8
    assert ARMS[layers]["recalled"][seed] < hybrid - 0.3


@pytest.mark.parametrize("layers", OTHERS)
def test_the_others_have_the_best_of_three_rates(layers):
    swept = {float(rate): share for rate, share in ARMS[layers]["swept"].items()}
    assert sorted(swept) == sorted(RATES)
    assert ARMS[layers]["rate"] == max(swept, key=swept.__getitem__)
