"""From runs at small budgets to the size for the next one."""

from collections.abc import Callable

import numpy as np
import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.scaling import choose_size, fit_power_law

exercise = Exercise(
    reference=choose_size,
    lesson="12",
    title="Which size for the next budget?",
    minutes=10,
    difficulty=3,
    tolerance=1e-3,
    equivalent=("losses.unsqueeze(-1) -> losses", "-1 -> 1"),  # one column either way
    hints=(
        "Take one budget first. Its losses fall and rise again, and no size that was tried need be "
        "the best one: which curve has a lowest point, and how many coefficients does it have?",
        "`torch.linalg.lstsq` fits several columns at once: one row a run, one column a power of "
        "log N. Where is the slope of the fitted curve 0, and which size is that?",
        "Now there is one best size a budget. Your `fit_power_law` returns a coefficient and an "
        "exponent with a minus: what does its law give at the new budget?",
    ),
    clauses={
        "Runs come in any order": "in any order",
        "Over the logarithm of the parameters": "parabola_over_sizes",
        "How the best sizes grow": "line_through_sizes",
        "Raises ValueError for runs at one budget": GIVEN,
    },
)

Run = tuple[float, float, float]


def drawn(draw: Draw, budgets: int, sizes: int, noise: float = 0.0) -> tuple[list[Run], float]:
    """Draw runs at some budgets, and the next budget; the second valley is off the line."""
    growth, first = 0.3 + draw.number(0, 60) / 100, 10.0 * draw.number(20, 60)
    step = 2.0 + draw.number(0, 30) / 10
    runs = []
    for i in range(budgets):
        flops = 1000.0 * step**i
        # the least point lies beside the middle of the sizes
        best, bend = (
            first * step ** (growth * i) * (1.5 if i == 1 else 1),
            0.1 + draw.number(0, 20) / 100,
        )
        aside = 0.7 + draw.number(0, 60) / 100
        for j in range(sizes):
            size = best * aside * 2.0 ** (j - (sizes - 1) / 2)
            away = float(np.log(size / best))
            loss = 2.0 - 0.1 * i + bend * away**2 + noise * draw.normal(1).item()
            runs.append((flops, size, loss))
    return runs, 1000.0 * step**budgets


@exercise.cases
def cases(draw: Draw):
    two = [(1.0, 1.0, 3.0), (1.0, 2.0, 2.0), (1.0, 4.0, 3.0)]
    four = [(10.0, 2.0, 2.5), (10.0, 4.0, 1.5), (10.0, 8.0, 2.5)]
    yield "best sizes 2, 4, and so 8", (two + four, 100.0)
    yield "three sizes at two budgets", drawn(draw, 2, 3)
    yield "five sizes at three budgets", drawn(draw, 3, 5, noise=0.004)
    runs, budget = drawn(draw, 4, 6, noise=0.004)
    order = torch.randperm(len(runs), generator=torch.Generator().manual_seed(len(runs)))
    yield "in any order", ([runs[i] for i in order.tolist()], budget)
    yield "several runs of a size", (runs + [(c, n, loss + 0.01) for c, n, loss in runs], budget)
    yield "fewer sizes at the last budget", (runs[:-2], budget)
    yield "a smaller budget than any", (runs, 500.0)
    ends = [
        (c, size * c / 1e3, 2 + 0.2 * float(np.log(size / best)) ** 2)
        for c, best in ((1e3, 30.0), (2e3, 40.0))
        for size in (12.0, 16.0, 24.0, 32.0)
    ]
    yield "valleys whose lowest runs are at an end", (ends, 4e3)


@exercise.edges
def edges(draw: Draw):
    runs, budget = drawn(draw, 4, 6, noise=0.004)
    again = [(c, n, loss + 0.02 * draw.normal(1).item()) for c, n, loss in (*runs[::2], *runs[::4])]
    yield "several runs of some sizes", (runs + again, budget)
    yield "a budget between two that were run", (runs, 1000.0 * (budget / 1000) ** 0.4)
    small = [(c / 1e4, n, loss) for c, n, loss in runs]
    yield "budgets below one, as in petaflop-days", (small, budget / 1e4)
    beyond = [
        (c, size * c / 1e3, 2 + bend * float(np.log(size / best)) ** 2)
        for c, best, bend in ((1e3, 80.0, 0.1 + draw.number(0, 9) / 90), (2e3, 140.0, 0.2))
        for size in (12.0, 16.0, 24.0, 32.0)
    ]
    yield "valleys beyond all sizes that were tried", (beyond, 4e3)


@exercise.requires("valleys whose least points are on a power law give its size")
def found_again(answer, draw: Draw):
    for growth in (0.4, 0.5, 0.7):
        runs = [
            (c, n, 1.0 + 0.3 * float(np.log(n / (2 * c**growth))) ** 2)
            for c in (100.0, 300.0, 900.0)
            for n in (10.0, 30.0, 90.0, 200.0)
        ]
        if abs(answer(runs, 2700.0) / (2 * 2700.0**growth) - 1) > 1e-2:
            return False
    return True


@exercise.requires("another unit of the loss, and another floor of a budget, change nothing")
def another_unit(answer, draw: Draw):
    runs, budget = drawn(draw, 3, 5, noise=0.004)
    changed = [(c, n, 1.4427 * loss + c / 1e4) for c, n, loss in runs]
    return abs(answer(changed, budget) / answer(runs, budget) - 1) < 1e-2


@exercise.requires("sizes counted in dozens give the size in dozens")
def in_dozens(answer, draw: Draw):
    runs, budget = drawn(draw, 3, 5, noise=0.004)
    dozens = [(c, n / 12, loss) for c, n, loss in runs]
    return abs(12 * answer(dozens, budget) / answer(runs, budget) - 1) < 1e-2


def by_budget(runs: list[Run]) -> dict[float, tuple[torch.Tensor, torch.Tensor]]:
    """Return the sizes and losses of each budget."""
    found = {}
    for flops in sorted({c for c, _, _ in runs}):
        points = [(n, loss) for c, n, loss in runs if c == flops]
        found[flops] = torch.tensor(points, dtype=torch.float64).T
    return found


def vertex(x: torch.Tensor, losses: torch.Tensor, factor: float = -0.5) -> torch.Tensor:
    """Return where the parabola through the losses is least, with the usual factor."""
    powers = torch.stack([x.square(), x, torch.ones_like(x)], dim=-1)
    bend, slope, _ = torch.linalg.lstsq(powers, losses.unsqueeze(-1)).solution.flatten()
    return factor * slope / bend


def extrapolated(best: dict[float, torch.Tensor], budget: float) -> float:
    """Return what the power law through the best sizes gives at a budget."""
    sizes = torch.stack([*best.values()])
    coefficient, exponent = fit_power_law(torch.tensor([*best]).to(sizes), sizes)
    return (coefficient * budget**-exponent).item()


def with_best(runs: list[Run], budget: float, of_one: Callable) -> float:
    """Choose by another best size of each budget."""
    return extrapolated({c: of_one(*points) for c, points in by_budget(runs).items()}, budget)


@exercise.mistake
def lowest_run(runs, budget):
    """The size of the lowest run of each budget was taken. The best size may be between two that
    were tried: what does the parabola say?"""
    return with_best(runs, budget, lambda n, losses: n[losses.argmin()])


@exercise.mistake(raises=ValueError)
def parabola_over_sizes(runs, budget):
    """The parabola was laid through the losses over N itself. Half the best size and twice the best
    size should be equally far from it: over which quantity are they?"""
    return with_best(runs, budget, vertex)


@exercise.mistake
def line_through_sizes(runs, budget):
    """The best sizes were put on a straight line over the budget. Between which two quantities is a
    power law a straight line?"""
    best = {c: vertex(n.log(), losses).exp() for c, (n, losses) in by_budget(runs).items()}
    x, y = np.array([*best]), torch.stack([*best.values()]).numpy()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return float(y.mean() + slope * (budget - x.mean()))


@exercise.mistake
def without_the_two(runs, budget):
    """The least point of a x² + b x + c was taken to be at -b / a. Where is the slope 2 a x + b
    zero?"""
    return with_best(runs, budget, lambda n, losses: vertex(n.log(), losses, -1.0).exp())


@exercise.mistake
def sign_of_the_vertex(runs, budget):
    """The least point has the wrong sign: the slope of a x² + b x + c is 2 a x + b. For which x is
    it zero?"""
    return with_best(runs, budget, lambda n, losses: vertex(n.log(), losses, 0.5).exp())


@exercise.mistake
def logarithm_of_the_size(runs, budget):
    """The least points were not turned back into sizes: what came out of the parabola is log N."""
    return with_best(runs, budget, lambda n, losses: vertex(n.log(), losses))


@exercise.mistake
def sign_of_the_exponent(runs, budget):
    """The best sizes shrink here as the budget grows. `fit_power_law` returns the exponent of
    c x^(-a): which sign does the budget's power have?"""
    best = {c: vertex(n.log(), losses).exp() for c, (n, losses) in by_budget(runs).items()}
    sizes = torch.stack([*best.values()])
    coefficient, exponent = fit_power_law(torch.tensor([*best]).to(sizes), sizes)
    return (coefficient * budget**exponent).item()


@exercise.mistake
def square_root(runs, budget):
    """The last best size was enlarged with the square root of the budget. That is one law's answer;
    what do your own valleys say about how the best size grows?"""
    flops, (n, losses) = [*by_budget(runs).items()][-1]
    return (vertex(n.log(), losses).exp() * (budget / flops) ** 0.5).item()


@exercise.mistake
def exponent_of_a_half(runs, budget):
    """The best sizes were taken to grow with the square root of the budget, through the mean of the
    valleys. What exponent do the valleys themselves have?"""
    best = {c: vertex(n.log(), losses) for c, (n, losses) in by_budget(runs).items()}
    start = np.mean([top.item() - 0.5 * np.log(c) for c, top in best.items()])
    return float(np.exp(start + 0.5 * np.log(budget)))


@exercise.mistake
def three_lowest_runs(runs, budget):
    """Each parabola was laid through the three lowest losses alone. Noise moves three points more
    than it moves all: which runs of a budget have something to say?"""

    def of_one(n, losses):
        lowest = losses.argsort()[:3]
        return vertex(n[lowest].log(), losses[lowest]).exp()

    return with_best(runs, budget, of_one)


@exercise.mistake
def last_two_valleys(runs, budget):
    """The power law goes through the last two valleys alone. What do those before them say?"""
    best = {c: vertex(n.log(), losses).exp() for c, (n, losses) in by_budget(runs).items()}
    return extrapolated({c: best[c] for c in sorted(best)[-2:]}, budget)


@exercise.mistake
def in_proportion(runs, budget):
    """The last best size was enlarged in proportion to the budget. Then no larger budget would buy
    any more text: how do the valleys' own sizes grow?"""
    flops, (n, losses) = [*by_budget(runs).items()][-1]
    return (vertex(n.log(), losses).exp() * budget / flops).item()


@exercise.mistake
def within_the_sizes_tried(runs, budget):
    """The best size of a budget was brought back among those that were tried. The parabola may be
    least beyond them all: where is it?"""

    def of_one(n, losses):
        return vertex(n.log(), losses).exp().clamp(n.min(), n.max())

    return with_best(runs, budget, of_one)


@exercise.mistake
def last_valley(runs, budget):
    """This is the best size of the largest budget that was run. The next budget is another one: how
    does the best size grow from valley to valley?"""
    n, losses = [*by_budget(runs).values()][-1]
    return vertex(n.log(), losses).exp().item()


@exercise.mistake
def one_parabola(runs, budget):
    """One parabola was laid through the runs of all budgets. Each budget has its own valley."""
    n, losses = torch.tensor([run[1:] for run in runs], dtype=torch.float64).T
    return vertex(n.log(), losses).exp().item()


@exercise.mistake
def first_and_last_valley(runs, budget):
    """The power law goes through the first and the last valley alone. What do those between them
    say?"""
    best = {c: vertex(n.log(), losses).exp() for c, (n, losses) in by_budget(runs).items()}
    ends = {min(best): best[min(best)], max(best): best[max(best)]}
    return extrapolated(ends, budget)


@exercise.alternative
def by_polyfit(runs, budget):
    found = {}
    for flops, size, loss in runs:
        found.setdefault(flops, []).append((np.log(size), loss))
    best = []
    for points in found.values():
        bend, slope, _ = np.polyfit(*np.array(points).T, 2)
        best.append(-slope / bend / 2)
    growth, start = np.polyfit(np.log([*found]), best, 1)
    return float(np.exp(start + growth * np.log(budget)))


@exercise.alternative
def centred(runs, budget):
    best = {}
    for flops, (n, losses) in by_budget(runs).items():
        x = n.log2()
        best[flops] = 2.0 ** (x.mean() + vertex(x - x.mean(), losses))
    return extrapolated(best, budget)
