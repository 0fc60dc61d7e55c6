"""What lesson 12 says of its stored runs."""

import math
from itertools import product
from statistics import mean

import numpy as np
import pytest
import torch

from course_lib.instruments import isoflop, results
from course_lib.scaling import choose_size, fit_power_law
from research.experiments.scaling import LARGER, SIZES, predicted_size

KEPT = results.load("scaling")["figures"]
FOURTH = results.load("fourth_budget")["figures"]["rows"]
FOURTH_POINTS = [(row["parameters"], row["loss"]) for row in KEPT["larger"] + FOURTH]
BUDGETS = sorted(SIZES)


def points(flops, seeds=(0, 1, 2)):
    rows = [row for row in KEPT["rows"] if row["flops"] == flops and row["seed"] in seeds]
    return [(row["parameters"], row["loss"]) for row in rows]


def by_size(flops, seeds=(0, 1, 2)):
    """Return the mean loss of each size of a budget."""
    sizes = sorted({n for n, _ in points(flops)})
    return {n: mean(loss for m, loss in points(flops, seeds) if m == n) for n in sizes}


@pytest.mark.parametrize("flops", BUDGETS)
def test_at_each_budget_both_ends_are_worse_than_the_middle(flops):
    low, *middle, high = by_size(flops).values()
    assert min(middle) < min(low, high) - 0.02


def test_at_the_smallest_budget_the_widest_model_is_behind_a_bigram_model():
    assert [*by_size(BUDGETS[0]).values()][-1] > KEPT["pairs"]


@pytest.mark.parametrize("row", KEPT["search"], ids=lambda row: f"{row['flops']:.0e}-{row['d']}")
def test_each_size_has_a_rate_whose_neighbours_are_worse(row):
    rates = {
        x["rate"]: x["loss"]
        for x in KEPT["search"]
        if (x["flops"], x["d"]) == (row["flops"], row["d"])
    }
    best = min(rates, key=rates.__getitem__)
    assert min(rates) < best < max(rates)


def test_the_size_that_was_trained_at_the_fourth_budget_is_the_one_that_the_valleys_choose():
    assert isoflop.size(predicted_size(KEPT["rows"])) == KEPT["larger"][0]["parameters"] == 59_328


def test_at_the_fourth_budget_it_beats_every_other_size_whatever_the_rate():
    worst = max(row["loss"] for row in KEPT["larger"])
    assert {row["d"] for row in FOURTH} == {32, 64, 96}
    assert worst < min(row["loss"] for row in FOURTH)


def test_the_loss_is_above_the_line_and_falls_by_less_from_budget_to_budget():
    least = [isoflop.minimum(points(c))[1] for c in BUDGETS]
    c, alpha = fit_power_law(torch.tensor(BUDGETS), torch.tensor(least))
    came = mean(row["loss"] for row in KEPT["larger"])
    assert came > (c * LARGER**-alpha).item() + 0.05
    ratios = [b / a for a, b in zip([*least], [*least[1:], came], strict=True)]
    assert ratios == sorted(ratios)


@pytest.mark.parametrize("seeds", [(0, 1, 2), (0,), (1,), (2,)])
def test_a_law_with_a_floor_foretells_the_loss_better_than_a_line(seeds):
    least = [isoflop.minimum(points(c, seeds))[1] for c in BUDGETS]
    c, alpha = fit_power_law(torch.tensor(BUDGETS), torch.tensor(least))
    came = isoflop.minimum(FOURTH_POINTS)[1]
    first, second = -np.diff(least)
    floor = least[-1] - second * second / first
    assert abs(came - floor) < (came - (c * LARGER**-alpha).item()) / 2


def wasted(n):
    """Return the share of the fourth budget that a model of n parameters wastes."""
    sizes, losses = np.transpose(FOURTH_POINTS)
    loss = np.polyval(np.polyfit(np.log(sizes), losses, 2), np.log(n))
    minima = [*(isoflop.minimum(points(c))[1] for c in BUDGETS), isoflop.minimum(FOURTH_POINTS)[1]]
    needed = np.interp(loss, minima[::-1], np.log([*BUDGETS, LARGER])[::-1])
    return 1 - np.exp(needed) / LARGER


def test_one_step_ahead_line_and_exponents_are_alike_and_three_ahead_both_exponents_waste():
    best = {c: isoflop.minimum(points(c))[0] for c in BUDGETS}
    runs = [(row["flops"], row["parameters"], row["loss"]) for row in KEPT["rows"]]
    near = [4**exponent * best[BUDGETS[-1]] for exponent in (0.5, 0.73)]
    assert max(map(wasted, [choose_size(runs, LARGER), *near])) < 0.05
    assert min(map(wasted, [best[BUDGETS[-1]], 4 * best[BUDGETS[-1]]])) > 0.1
    small, large = (64**exponent * best[BUDGETS[0]] for exponent in (0.5, 0.73))
    assert small < choose_size(runs, LARGER) < large
    assert min(wasted(small), wasted(large)) > 0.08


def wasted_by_lines(budgets):
    """Return what lines waste that take the runs of one seed at each budget, by the seeds."""
    found = {}
    for seeds in product(range(3), repeat=len(budgets)):
        drawn = zip(budgets, seeds, strict=True)
        runs = [(c, *point) for c, seed in drawn for point in points(c, (seed,))]
        found[seeds] = wasted(choose_size(runs, LARGER))
    return found


def test_lines_of_one_seed_each_waste_little_but_for_the_failed_run():
    failed = 2  # the seed of it, at the smallest budget
    for budgets, most, least_failed in ((BUDGETS, 0.01, 0.04), (BUDGETS[:2], 0.08, 0.2)):
        found = wasted_by_lines(budgets)
        assert max(x for seeds, x in found.items() if seeds[0] != failed) < most
        assert min(x for seeds, x in found.items() if seeds[0] == failed) > least_failed
    assert max(wasted_by_lines(BUDGETS).values()) < 0.06


@pytest.mark.parametrize("seeds", [(0, 1, 2), (0,), (1,), (2,)])
def test_four_times_too_large_or_too_small_wastes_half_of_the_budget(seeds):
    minima = [isoflop.minimum(points(c, seeds)) for c in BUDGETS]
    losses = by_size(BUDGETS[-1], seeds)
    best = minima[-1][0]
    for n in (min(losses), max(losses)):
        assert 3.5 < max(n / best, best / n) < 4
        needed = np.exp(np.interp(losses[n], [y for _, y in minima][::-1], np.log(BUDGETS)[::-1]))
        assert needed < BUDGETS[-1] / 2
    assert max(losses.values()) / minima[-1][1] == pytest.approx(1.07, abs=0.01)


@pytest.mark.parametrize("seeds", [(0, 1, 2), (0,), (1,), (2,)])
def test_a_small_model_has_paid_back_after_about_as_many_tokens_as_it_has_read(seeds):
    minima = [isoflop.minimum(points(c, seeds)) for c in BUDGETS]
    [read] = {row["tokens"] for row in KEPT["rows"] if row["parameters"] == 15_840} & {4_230_144}
    loss = by_size(BUDGETS[-1], seeds)[15_840]
    log_c = np.interp(loss, [y for _, y in minima][::-1], np.log(BUDGETS)[::-1])
    n = np.exp(np.interp(log_c, np.log(BUDGETS), np.log([n for n, _ in minima])))
    paid_back = (BUDGETS[-1] - np.exp(log_c)) / (2 * (n - 15_840))
    assert 0.5 < paid_back / read < 2


def test_valleys_of_one_seed_choose_sizes_that_are_alike():
    runs = [(row["flops"], row["parameters"], row["loss"]) for row in KEPT["rows"]]
    for seed in range(3):
        own = [x for x, row in zip(runs, KEPT["rows"], strict=True) if row["seed"] == seed]
        assert abs(math.log(choose_size(own, LARGER) / choose_size(runs, LARGER))) < 0.2


def test_with_the_hidden_half_of_the_scores_paid_for_12_and_16_still_win():
    losses = results.load("executed_race")["figures"]["losses"]
    mean = {int(d): sum(runs) / len(runs) for d, runs in losses.items()}
    assert max(mean[12], mean[16]) < min(mean[8], mean[24], mean[32]) - 0.02
