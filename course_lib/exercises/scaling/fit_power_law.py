"""The straight line between logarithms."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import LEAST_SQUARES
from course_lib.scaling import fit_power_law

exercise = Exercise(
    reference=fit_power_law,
    lesson="12",
    title="A straight line between logarithms",
    minutes=8,
    difficulty=2,
    tolerance=1e-4,
    no_gradient="a fit is read, and nobody learns through it",
    hints=(
        "Take the logarithm of both sides of y = c x^(-a). What was multiplied is now added: what "
        "is the slope of that line?",
        "The least-squares slope is a sum of products of deviations from the mean, divided by a "
        "sum of squares. Whose deviations are squared?",
        "The line goes through the point of the two means. How high is it where log x is 0, and "
        "what is c if that height is its logarithm?",
    ),
    clauses={
        "Least squares between the logarithms": "without_logarithms",
        "no ready-made fit or solver": GIVEN,
    },
    forbidden=LEAST_SQUARES,
)


def runs(draw: Draw, count: int, noise: float = 0.1):
    """Draw sizes over some powers of ten, and losses that fall as they grow."""
    # sizes apart from each other, so that the slope is well determined
    log_x = draw.normal(count).abs() / 2 + torch.arange(count) * 4 / count
    exponent, log_c = 0.2 + draw.normal(1).abs() / 5, 1 + draw.normal(1).abs()
    return log_x.exp(), (log_c - exponent * log_x + noise * draw.normal(count)).exp()


@exercise.cases
def cases(draw: Draw):
    yield "two runs", (torch.tensor([1.0, 4.0]), torch.tensor([8.0, 2.0]))
    yield "three runs on a line", runs(draw, 3, noise=0.0)
    yield "five runs", runs(draw, 5)
    yield "many runs", runs(draw, 20, noise=0.3)
    x, y = runs(draw, 6)
    yield "in any order", (x[[3, 0, 5, 1, 4, 2]], y[[3, 0, 5, 1, 4, 2]])
    yield "what grows has a negative exponent", (x, y.reciprocal())


@exercise.edges
def edges(draw: Draw):
    x, y = runs(draw, 6)
    again = y[:3] * (draw.normal(3) / 3).exp()
    yield "several runs of a size", (torch.cat([x, x[:3]]), torch.cat([y, again]))
    yield "sizes below one and above", (x / x.median(), y)


@exercise.requires("runs that are exactly on a power law give its coefficient and exponent")
def found_again(answer, draw: Draw):
    x, _ = runs(draw, 7)
    for coefficient, exponent in ((3.0, 0.07), (0.5, 1.0), (40.0, -0.4)):
        found = answer(x, coefficient * x**-exponent)
        if not torch.allclose(torch.stack(found), torch.tensor([coefficient, exponent]), rtol=1e-3):
            return False
    return True


@exercise.requires("another unit of y changes the coefficient alone, by that factor")
def another_unit(answer, draw: Draw):
    x, y = runs(draw, 6)
    (c, a), (again, same) = answer(x, y), answer(x, 100 * y)
    return bool(torch.isclose(again, 100 * c, rtol=1e-3) and torch.isclose(same, a, rtol=1e-3))


def fitted(x, y, slope):
    """Return what a slope leads to."""
    return (y.log().mean() - slope * x.log().mean()).exp(), -slope


def slope(x, y):
    d_x = x - x.mean()
    return (d_x * (y - y.mean())).sum() / d_x.square().sum()


@exercise.mistake
def slope_as_exponent(x, y):
    """The exponent has the wrong sign. The line falls, so its slope is negative; the formula has
    the minus already."""
    coefficient, exponent = fit_power_law(x, y)
    return coefficient, -exponent


@exercise.mistake
def logarithm_of_the_coefficient(x, y):
    """The coefficient is its own logarithm: the height of the line at log x = 0 is log c. What is
    c?"""
    coefficient, exponent = fit_power_law(x, y)
    return coefficient.log(), exponent


@exercise.mistake
def without_logarithms(x, y):
    """This is a straight line through x and y themselves. Between which two quantities is a power
    law a straight line?"""
    falls = slope(x, y)
    return y.mean() - falls * x.mean(), -falls


@exercise.mistake
def exponential_law(x, y):
    """The logarithm of y was taken, that of x was not: that is an exponential law, y = c exp(-a
    x)."""
    falls = slope(x, y.log())
    return (y.log().mean() - falls * x.mean()).exp(), -falls


@exercise.mistake
def through_the_origin(x, y):
    """The line goes through the origin: the deviations were measured from 0 and not from the means.
    Then c would be 1."""
    return fitted(x, y, (x.log() * y.log()).sum() / x.log().square().sum())


@exercise.mistake
def other_regression(x, y):
    """The sum of products was divided by the squares of y's deviations: that is the line that
    predicts x from y, turned around. Whose errors does the fit make least?"""
    return fitted(x, y, slope(y.log(), x.log()))


@exercise.mistake
def first_and_last(x, y):
    """The slope was taken from the first and the last run alone. What do the runs between them
    say?"""
    log_x, log_y = x.log(), y.log()
    return fitted(x, y, (log_y[-1] - log_y[0]) / (log_x[-1] - log_x[0]))


@exercise.mistake
def smallest_and_largest(x, y):
    """The slope was taken from the smallest and the largest run alone. What do the runs between
    them say?"""
    log_x, log_y = x.log(), y.log()
    least, most = x.argmin(), x.argmax()
    return fitted(x, y, (log_y[most] - log_y[least]) / (log_x[most] - log_x[least]))


@exercise.mistake
def line_through_first_and_last(x, y):
    """This is the line through the first and the last run alone. What do the runs between them
    say?"""
    log_x, log_y = x.log(), y.log()
    slope = (log_y[-1] - log_y[0]) / (log_x[-1] - log_x[0])
    return (log_y[0] - slope * log_x[0]).exp(), -slope


@exercise.mistake
def line_through_smallest_and_largest(x, y):
    """This is the line through the smallest and the largest run alone. What do the runs between
    them say?"""
    order = x.argsort()
    return line_through_first_and_last(x[order], y[order])


@exercise.mistake
def two_bases(x, y):
    """Logarithms to base 10 went in, and the coefficient came back with base e: undo the logarithm
    that was taken."""
    coefficient, exponent = fit_power_law(x, y)
    return coefficient.log10().exp(), exponent


@exercise.mistake
def mean_over_sum(x, y):
    """The slope was divided by the number of runs twice: a mean of products over a sum of squares.
    Take the mean of both, or the sum of both."""
    return fitted(x, y, slope(x.log(), y.log()) / len(x))


@exercise.mistake
def exchanged(x, y):
    """Exponent and coefficient have changed places. The docstring says in which order they are
    returned."""
    return fit_power_law(x, y)[::-1]


@exercise.mistake
def logarithm_of_the_mean(x, y):
    """The mean of y was taken before its logarithm. The line goes through the mean of the
    logarithms: which of the two comes first?"""
    _, exponent = fit_power_law(x, y)
    return (y.mean().log() + exponent * x.log().mean()).exp(), exponent


@exercise.alternative
def by_covariance(x, y):
    covariance = torch.cov(torch.stack([x.log(), y.log()]))
    slope = covariance[0, 1] / covariance[0, 0]
    return torch.exp(y.log().mean() - slope * x.log().mean()), -slope


@exercise.alternative
def by_normal_equations(x, y):
    log_x, log_y, n = x.log(), y.log(), len(x)
    top = n * (log_x * log_y).sum() - log_x.sum() * log_y.sum()
    slope = top / (n * (log_x**2).sum() - log_x.sum() ** 2)
    return ((log_y - slope * log_x).sum() / n).exp(), 0 - slope
