"""The learning rate of the paper: up for a while, then down with the root of the step."""

import math

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.translation import noam

exercise = Exercise(
    reference=noam,
    lesson="11_recipe",
    title="Up, then down",
    minutes=5,
    difficulty=1,
    hints=(
        "The formula has a minimum of two terms. Which of them is the smaller one at step 1, and "
        "which one long after the warm-up?",
        "Put step = warm_up into both terms. What do you find, and what does it say about the "
        "place where the curve turns?",
    ),
    tolerance=1e-9,
    clauses={
        "rises linearly": "no_warm_up",
        "falls as one over the root": "falls_as_one_over_the_step",
        "Steps count from 1": "one_step_late",
    },
)


@exercise.cases
def cases(draw: Draw):
    d_model, warm_up = draw.number(8, 1024), draw.number(20, 5000)
    yield "the first step", (1, d_model, draw.number(2, 9))
    yield "the first of 4,000 steps", (1, 512, 4000)
    yield "on the way up", (draw.number(2, warm_up), d_model, warm_up)
    yield "the last step of the warm-up", (warm_up, d_model, warm_up)
    yield "the step after it", (warm_up + 1, d_model, warm_up)
    yield "on the way down", (draw.number(2, 9) * warm_up, d_model, warm_up)
    yield "long after", (draw.number(10**5, 10**6), d_model, warm_up)
    yield "a warm-up of one step", (draw.number(2, 50), d_model, 1)
    yield "the paper's", (draw.number(1, 100_000), 512, 4000)


@exercise.requires("the rate is highest at the last step of the warm-up")
def highest_there(answer, draw: Draw):
    d_model, warm_up = draw.number(8, 1024), draw.number(20, 500)
    top = answer(warm_up, d_model, warm_up)
    return top > answer(warm_up - 1, d_model, warm_up) and top > answer(
        warm_up + 1, d_model, warm_up
    )


@exercise.requires("it rises in equal steps, and falls by half while the step grows fourfold")
def line_and_root(answer, draw: Draw):
    d_model, warm_up = draw.number(8, 1024), draw.number(20, 500)
    step, late = draw.number(1, 10), warm_up * draw.number(1, 9)
    up = [answer(n * step, d_model, warm_up) for n in (1, 2)]
    down = [answer(n * late, d_model, warm_up) for n in (1, 4)]
    # rates of a millionth and less
    low = [answer(n, d_model, 4000) for n in (1, 2)]
    later = [answer(n * 10**8, d_model, warm_up) for n in (1, 4)]
    rises = all(math.isclose(b, 2 * a) and a > 0 for a, b in (up, low))
    return rises and all(math.isclose(b, a / 2) for a, b in (down, later))


@exercise.requires("a model four times as wide gets half the rate")
def wider_is_slower(answer, draw: Draw):
    d_model, warm_up, step = draw.number(8, 1024), draw.number(20, 500), draw.number(1, 2000)
    rates = [answer(step, n * d_model, warm_up) for n in (1, 4)]
    return math.isclose(rates[1], rates[0] / 2) and rates[0] > 0


@exercise.mistake
def larger_of_both(step, d_model, warm_up):
    """The larger of the two terms was taken: it starts high, and grows without end after the
    warm-up. Which one is meant to win at the beginning?"""
    return d_model**-0.5 * max(step * warm_up**-1.5, step**-0.5)


@exercise.mistake
def power_of_a_half(step, d_model, warm_up):
    """The two branches do not meet at the end of the warm-up: the curve jumps. To which power must
    warm_up be, so that both give the same at step = warm_up?"""
    return d_model**-0.5 * min(step * warm_up**-0.5, step**-0.5)


@exercise.mistake
def no_warm_up(step, d_model, warm_up):
    """There is no warm-up: the rate only falls, and is highest at step 1. Which term is the smaller
    one there?"""
    return d_model**-0.5 * step**-0.5


@exercise.mistake
def size_in_the_falling_term(step, d_model, warm_up):
    """d_model^(-1/2) stands before the falling term alone, so the rate rises too steeply, and the
    warm-up is over too early. What does it multiply in the formula?"""
    return min(d_model**-0.5 * step**-0.5, step * warm_up**-1.5)


@exercise.mistake
def never_falls(step, d_model, warm_up):
    """After the warm-up the rate goes on rising. Where is the term that falls?"""
    return d_model**-0.5 * step * warm_up**-1.5


@exercise.mistake
def stays_up(step, d_model, warm_up):
    """After the warm-up the rate stays where it is. With which power of the step should it fall?"""
    return d_model**-0.5 * min(step * warm_up**-1.5, warm_up**-0.5)


@exercise.mistake
def falls_from_the_top(step, d_model, warm_up):
    """The fall counts its steps from the end of the warm-up. The formula counts all steps from the
    beginning of training."""
    return d_model**-0.5 * min(step * warm_up**-1.5, max(1, step - warm_up) ** -0.5)


@exercise.mistake
def width_forgotten(step, d_model, warm_up):
    """The width of the model plays no part. Which factor makes it slower?"""
    return min(step * warm_up**-1.5, step**-0.5)


@exercise.mistake
def wider_is_faster(step, d_model, warm_up):
    """A wider model gets a higher rate here, where it should get a lower one. What sign has the
    power of d_model?"""
    return d_model**0.5 * min(step * warm_up**-1.5, step**-0.5)


@exercise.mistake
def width_without_root(step, d_model, warm_up):
    """Divided by d_model, where the formula divides by its root. By how much do the two differ for
    d_model = 512?"""
    return min(step * warm_up**-1.5, step**-0.5) / d_model


@exercise.mistake
def one_step_late(step, d_model, warm_up):
    """Everything is one step late: the step was counted from 0, and 1 was added once more. In this
    function the first step is 1."""
    return noam(step + 1, d_model, warm_up)


@exercise.mistake
def falls_as_one_over_the_step(step, d_model, warm_up):
    """It falls in proportion to the step, which is too fast. With which power should it fall?"""
    return d_model**-0.5 * min(step * warm_up**-1.5, warm_up**0.5 / step)


@exercise.mistake
def as_a_tensor(step, d_model, warm_up):
    """The right number, but as a tensor. An optimiser takes a float, and the signature promises
    one."""
    return torch.tensor(noam(step, d_model, warm_up))


@exercise.alternative
def by_cases(step, d_model, warm_up):
    if step <= warm_up:
        return step / (warm_up * math.sqrt(d_model * warm_up))
    return 1 / math.sqrt(d_model * step)
