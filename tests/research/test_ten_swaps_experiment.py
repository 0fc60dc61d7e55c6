"""What the page of the ten swaps says of its stored runs."""

from statistics import mean

from course_lib.instruments import results
from course_lib.instruments.ten_swaps import SWAPS

FIGURES = results.load("ten_swaps")["figures"]
ARMS = {name: arm["losses"] for name, arm in FIGURES["arms"].items()}
WITHOUT = {name.removeprefix("without "): x for name, x in FIGURES["left_out"].items()}


def test_two_swaps_come_near_to_all_and_rotary_alone_to_all_others_without_muon():
    assert max(ARMS["rotary and Muon"]) - min(ARMS["together"]) < 0.045
    assert abs(mean(ARMS["rotary"]) - mean(WITHOUT["Muon"])) < 0.02
    assert min(ARMS["no positions"]) > max(ARMS["2017"]) + 0.15


def test_a_mixture_and_qk_norm_cost_alone_and_save_in_company():
    for name in ("mixture", "QK-norm"):
        assert min(ARMS[name]) > max(ARMS["2017"])
        assert min(WITHOUT[name]) > max(ARMS["together"])


def test_local_layers_save_more_in_company_than_alone():
    alone = mean(ARMS["2017"]) - mean(ARMS["local and global"])
    assert 0 < 1.5 * alone < min(WITHOUT["local and global"]) - max(ARMS["together"])


def test_at_the_largest_rate_pre_norm_alone_learns():
    at = {name: FIGURES["arms"][name]["by_rate"].get("0.03") for name in ("2017", *SWAPS)}
    assert [name for name, loss in at.items() if loss and loss < 3] == ["pre-norm"]
