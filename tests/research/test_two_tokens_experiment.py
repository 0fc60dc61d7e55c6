"""What lesson 15 says of its stored runs with keys and values as tokens of their own."""

import pytest

from course_lib.instruments import results
from research.experiments.two_tokens import HYBRID, RATES, SEEDS

FIGURES = results.load("two_tokens")["figures"]
ARMS = {tuple(arm["layers"]): arm for arm in FIGURES["arms"]}
FULL = ("attention", "attention")
OTHERS = [layers for layers in ARMS if layers not in (HYBRID, FULL)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layers", OTHERS)
def test_with_each_seed_attention_over_a_layer_that_joins_recalls_and_the_others_do_not(
    layers, seed
):
    assert min(ARMS[x]["recalled"][seed] for x in (HYBRID, FULL)) > 0.8
    # hardly better than the value that was written last, whichever key is asked for
    assert ARMS[layers]["recalled"][seed] < FIGURES["last"] + 0.05


@pytest.mark.parametrize("layers", [*OTHERS, FULL])
def test_the_others_have_the_best_of_three_rates(layers):
    swept = {float(rate): share for rate, share in ARMS[layers]["swept"].items()}
    assert sorted(swept) == sorted(RATES)
    assert ARMS[layers]["rate"] == max(swept, key=swept.__getitem__)
