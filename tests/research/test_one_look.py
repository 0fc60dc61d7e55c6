"""What lesson 06 says of a model whose heads all look alike holds on every text measured."""

import pytest

from course_lib.instruments import results

KEPT = results.load("one_look")["figures"]


@pytest.fixture(params=[run for of in KEPT.values() for run in of["runs"]])
def run(request):
    return request.param


def test_one_look_in_every_layer_is_not_enough(run):
    assert run["one look"] > run["as it is"] + 3


def test_the_mean_of_nine_looks_is_not_enough_either(run):
    assert run["mean"] > run["as it is"] + 3


def test_a_head_is_chosen_for_every_layer():
    for of in KEPT.values():
        assert len(of["heads"]) == 30
        assert {*of["heads"]} <= {*range(9)}
