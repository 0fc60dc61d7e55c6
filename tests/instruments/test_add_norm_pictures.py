"""Lesson 07's pictures: what is drawn of a letter, and what stored results say of deep stacks."""

import html
import json
import re
from statistics import mean

import matplotlib
import pytest
from torch.nn import functional as F

matplotlib.use("agg")

from course_lib.instruments import plots, results
from course_lib.instruments.deep_stack import STARTS
from course_lib.instruments.pictures import add_norm as pictures

DEPTH = results.load("depth")["figures"]
CONTROLS = results.load("depth_controls")["figures"]
WARM_UP = results.load("warm_up")["figures"]
STREAM = results.load("stream")["figures"]

STAYS = {"size": [1.0] * 33, "own": [1.0] * 33}
FADES = {"size": [10.0**-level for level in range(33)], "own": [1.0] + [0.0] * 32}
FATES = {"N(0, 1/fan-in)": {"bare": FADES, "pre-norm": STAYS}}


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (pictures.residual, "the straight way by the identity I"),
        (pictures.four_ways, "the path around F has none"),
        (pictures.orders, "runs through the two plus signs only"),
        (lambda: pictures.circle(lambda x, *_: F.layer_norm(x, (3,))), "from 1.73 to 1.73"),
        (lambda: pictures.circle(lambda x, *_: x), "from 0."),
        (
            lambda: pictures.letter("A letter", FATES),
            "bare, N(0, 1/fan-in): 0% of it its own, root mean square 1e-32; pre-norm",
        ),
        (lambda: pictures.learned(DEPTH), "residual, N(0, 1/fan-in): explodes"),
        (lambda: pictures.warm_up(WARM_UP), "post-norm without 3.36, DeepNorm without 2.42"),
        (lambda: pictures.stream(STREAM), "jumps from 6 above block 11 to 1,001 above block 12"),
    ],
)
def test_a_picture_says_what_is_seen_in_it(displayed, draw, said):
    shown = displayed(draw)
    assert said in shown["text/plain"]
    assert html.escape(said) in shown["image/svg+xml"]


def test_a_letter_that_is_gone_is_no_letter(displayed):
    drawn = displayed(lambda: pictures.letter("A way", FATES))["image/svg+xml"]
    faded = displayed(lambda: pictures.letter("A way", {"": {"a": FADES, "b": FADES}}))
    blue = plots.COLOURS[0].lower()
    assert drawn.lower().count(blue) - faded["image/svg+xml"].lower().count(blue) == 8


def test_what_switches_choose_among_are_the_stacks_that_were_followed(displayed):
    shown = displayed(lambda: pictures.letter_by_hand("A way", FATES))
    page = html.unescape(shown["text/html"])
    [fates] = re.findall(r"fates = (\{.+?\}), starts", page)
    moved = json.loads(fates)
    assert moved["N(0, 1/fan-in)"]["pre-norm"] == STAYS
    assert moved["N(0, 1/fan-in)"]["bare"]["own"] == FADES["own"]
    assert not re.search(r"\[\[[A-Z]+\]\]", page)


def test_with_both_the_gradient_keeps_its_size_whatever_the_initial_weights():
    for start in STARTS:
        for run in DEPTH["starts"]["residual and norm"][start]:
            assert 1 / 20 < run["gradient"][0] / run["gradient"][-1] < 20


def test_post_norm_learns_from_the_default_weights_in_more_steps_only_with_either_warm_up():
    few, many = (CONTROLS[x] for x in ("post-norm", "patient post-norm"))
    assert all(min(runs) > 3.3 for of in few["torch's default"].values() for runs in of.values())
    assert {share: len(runs) for share, runs in many.items()} == {"5%": 3, "30%": 2}
    assert all(max(runs) < 2.5 for runs in many.values())


def test_of_the_four_pre_norm_alone_learns_from_all_initial_weights():
    assert pictures.that_learn(DEPTH) == (["residual", "pre-norm"], ["pre-norm"])
    patient = [x for by_start in DEPTH["patient"].values() for x in by_start.values()]
    assert min(patient) > DEPTH["trivial"] - 0.02, "not in a thousand steps either"


def test_a_last_norm_alone_does_not_hold_a_stack_from_large_weights():
    runs = CONTROLS["residual and last norm"]
    assert list(runs) == [f"{rate:g}" for rate in DEPTH["rates"]]
    assert {loss for losses in runs.values() for loss in losses} == {None}, "each overflows"


def test_32_post_norm_blocks_learn_from_small_weights_and_not_by_a_lower_rate_or_a_long_warm_up():
    torchs, small = (CONTROLS["post-norm"][start] for start in ("torch's default", "N(0, 0.02²)"))
    page = {("0.001", "5%"): 3.48, ("0.001", "30%"): 3.52, ("0.003", "5%"): 3.38}
    for (rate, share), said in (page | {("0.003", "30%"): 3.38}).items():
        assert mean(torchs[rate][share]) == pytest.approx(said, abs=0.006)
        assert min(torchs[rate][share]) > CONTROLS["trivial"]
    assert mean(small["0.003"]["5%"]) == pytest.approx(2.83, abs=0.006)
    assert max(small["0.003"]["5%"]) < CONTROLS["trivial"] - 0.4
    assert mean(small["0.01"]["5%"]) == pytest.approx(3.29, abs=0.006), "learned at one rate only"


def test_under_pre_norm_mean_squares_add_as_the_formula_says():
    for start, c2 in (("torch's default", 1 / 3), ("N(0, 1/fan-in)", 1), ("N(0, 0.02²)", 0.0128)):
        for run in DEPTH["starts"]["residual and norm"][start]:
            first, last = run["stream"][0], run["stream"][-1]
            assert 1.4 < first**2 < 1.65, "the page says 1.5"
            formula = (1 + 1.5 * c2**2 * 32 / first**2) ** 0.5
            assert 0.7 < last / first / formula < 1.3, "within 30 %"


def test_depth_pays_where_initial_weights_are_small_and_nothing_is_normed():
    by_depth = DEPTH["loss"]["residual"]["N(0, 0.02²)"]
    assert max(by_depth["32"]["losses"]) < min(by_depth["2"]["losses"] + by_depth["8"]["losses"])
    each = [x["32"]["losses"] for y in DEPTH["loss"].values() for x in y.values()]
    assert max(by_depth["32"]["losses"]) <= min(map(min, each)) + 0.02, "lowest of all"


def test_where_the_residual_connection_alone_learns_it_ends_below_pre_norm():
    alone, both = (DEPTH["loss"][kind] for kind in ("residual", "residual and norm"))
    for start in ("torch's default", "N(0, 0.02²)"):
        assert max(alone[start]["32"]["losses"]) < min(both[start]["32"]["losses"])


def test_a_warm_up_moves_the_highest_bearable_rate_up_by_one_step():
    rates = [f"{rate:g}" for rate in WARM_UP["rates"]]
    borne = {
        (name, share): [max(by_rate[rate]) < WARM_UP["trivial"] - 0.4 for rate in rates].count(True)
        for name, by_share in WARM_UP["losses"].items()
        for share, by_rate in by_share.items()
    }
    assert (borne["post-norm", "0%"], borne["post-norm", "30%"]) == (2, 3)
    assert (borne["DeepNorm", "0%"], borne["DeepNorm", "30%"]) == (3, 4)
    assert borne["pre-norm", "0%"] == borne["pre-norm", "30%"] == 4
    assert min(WARM_UP["without clipping"]["post-norm"]["0%"]) > 3.3, "clipping is not the cause"


def test_one_number_of_smollm2_s_first_token_is_nearly_all_of_it():
    first, middle = STREAM["first"], STREAM["others"]["0.5"]
    assert 290 < middle[30] / middle[0] < 340
    assert 150 < first[12] / first[11] < 170
    assert all(900 < x < 1100 for x in first[12:28])
    assert min(STREAM["its share"][12:28]) > 0.97
