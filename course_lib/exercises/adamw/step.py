"""One step of AdamW: two averages, and a decay that is apart from the gradient."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.optimizers import adamw_step

exercise = Exercise(
    reference=adamw_step,
    lesson="10_optimizers",
    title="One step of AdamW",
    minutes=8,
    difficulty=2,
    hints=(
        "Before step 1 both averages are 0. With b1 = 0.9 and a gradient of 1, what is m after "
        "step 1, and by what do you divide it to get 1 back?",
        "At step 1 the corrected averages are g and the square of g. What is left of the size of g "
        "in their quotient?",
        "The decay multiplies the parameter. Does anything of the two averages go into it?",
    ),
    clauses={
        "both 0 before step 1": GIVEN,
        "Nothing is changed in place": "inputs are not modified",
    },
    forbidden=("torch.optim.AdamW", "torch.optim.Adam"),
    no_gradient="nobody differentiates through a step, and the root has no slope at 0",
    small_only="squares of large gradients leave the range of a float",
)


def state(draw: Draw, *shape: int):
    """Draw a parameter, a gradient, and averages of some earlier steps."""
    return (
        draw.normal(*shape),
        draw.normal(*shape),
        draw.normal(*shape),
        draw.normal(*shape).square(),
    )


@exercise.cases
def cases(draw: Draw):
    nothing = torch.zeros(3)
    yield "the first step", (draw.normal(3), draw.normal(3), nothing, nothing, 1, 0.1, 0.0)
    yield "the second step", (*state(draw, 3), 2, 0.1, 0.0)
    yield "with decay", (*state(draw, 4), 3, 0.1, 0.5)
    yield "a matrix", (*state(draw, 3, 5), draw.number(2, 9), 0.01, 0.1)
    yield "a late step", (*state(draw, 2, 3), 5000, 0.3, 0.1)
    yield "one number", (*state(draw), 4, 0.2, 0.3)
    yield "other betas", (*state(draw, 4), 6, 0.1, 0.1, (0.8, 0.95))
    yield "a large epsilon", (*state(draw, 4), 6, 0.1, 0.1, (0.9, 0.99), 4.0)
    size, (parameter, gradient, first, second) = torch.tensor([0, 1, 1e-3, 1]), state(draw, 4)
    small = parameter, size * gradient, 0.1 * first, size**2 * second
    yield (
        "an epsilon above some averages and below others",
        (*small, 7, 0.1, 0.1, (0.9, 0.999), 0.2),
    )
    yield "a gradient of 0, at first", (draw.normal(3), nothing, nothing, nothing, 1, 0.1, 0.2)


@exercise.edges
def edges(draw: Draw):
    yield "the usual decay", (*state(draw, 4), 6, 0.1)


@exercise.requires("the first step moves by the rate, whatever the size of the gradient")
def by_the_rate(answer, draw: Draw):
    gradient, nothing = draw.normal(5) + 3 * draw.normal(5).sign(), torch.zeros(5)
    moved = [answer(nothing, c * gradient, nothing, nothing, 1, 0.1, 0.0)[0] for c in (1, 100)]
    return all(torch.allclose(x, -0.1 * gradient.sign(), atol=1e-4) for x in moved)


@exercise.requires("without a gradient, only the decay is left")
def decay_alone(answer, draw: Draw):
    parameter, nothing = draw.normal(4), torch.zeros(4)
    found, *_ = answer(parameter, nothing, nothing, nothing, 1, 0.1, 0.5)
    return torch.allclose(found, 0.95 * parameter, atol=1e-6)


def stepped(
    p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8, *, corrected=(True, True),
    kept=None, inside=False, sign=-1,
):  # fmt: skip
    """Take a step, with one thing or another left out."""
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2
    mean = m / (1 - betas[0] ** step) if corrected[0] else m
    square = v / (1 - betas[1] ** step) if corrected[1] else v
    size = (square + epsilon).sqrt() if inside else square.sqrt() + epsilon
    kept = 1 - rate * decay if kept is None else kept
    return kept * p + sign * rate * mean / size, m, v


@exercise.mistake
def not_corrected(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """Both averages were used as they are. They began at 0, so the first ones are too small, and
    not by the same factor: what share of its weights has an average had after one step?"""
    return stepped(p, g, m, v, step, rate, decay, betas, epsilon, corrected=(False, False))


@exercise.mistake
def square_not_corrected(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The average of the squares was not corrected for its start at 0, so the first steps are far
    too long. By what is it divided?"""
    return stepped(p, g, m, v, step, rate, decay, betas, epsilon, corrected=(True, False))


@exercise.mistake
def mean_not_corrected(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The average gradient was not corrected for its start at 0, so the first steps are too
    short. By what is it divided?"""
    return stepped(p, g, m, v, step, rate, decay, betas, epsilon, corrected=(False, True))


@exercise.mistake
def corrected_ones_returned(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The corrected averages were returned as the state. The next step corrects again: which two
    does it need?"""
    found, m, v = stepped(p, g, m, v, step, rate, decay, betas, epsilon)
    return found, m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)


@exercise.mistake
def counted_from_zero(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The correction has the power `step` + 1. Steps are counted from 1 here: how much weight has
    the first gradient at step 1?"""
    found, m, v = stepped(p, g, m, v, step + 1, rate, decay, betas, epsilon)
    return found, m, v


@exercise.mistake
def decay_in_the_gradient(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The decay was added to the gradient, as in Adam with L2 regularisation, so it is divided by
    the gradient's size like all else. AdamW keeps it apart: what multiplies the parameter?"""
    return stepped(p, g + decay * p, m, v, step, rate, 0.0, betas, epsilon)


@exercise.mistake
def decay_without_the_rate(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The parameter shrinks by `decay` alone. A smaller learning rate makes every part of the step
    smaller: what is missing in the factor?"""
    return stepped(p, g, m, v, step, rate, decay, betas, epsilon, kept=1 - decay)


@exercise.mistake
def no_decay(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """This is Adam: nothing shrinks the parameter. What does the W in AdamW add?"""
    return stepped(p, g, m, v, step, rate, 0.0, betas, epsilon)


@exercise.mistake
def epsilon_in_the_root(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """Epsilon is inside the root. There it weighs as its own root, 1e-4 in place of 1e-8: where
    does the formula have it?"""
    return stepped(p, g, m, v, step, rate, decay, betas, epsilon, inside=True)


@exercise.mistake
def upwards(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The step goes up the slope: the loss grows. What is the sign of the step?"""
    return stepped(p, g, m, v, step, rate, decay, betas, epsilon, sign=1)


@exercise.mistake
def no_momentum(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The step follows this gradient alone, and not the average of the gradients so far."""
    _, m_new, v_new = stepped(p, g, m, v, step, rate, decay, betas, epsilon)
    size = (v_new / (1 - betas[1] ** step)).sqrt() + epsilon
    return (1 - rate * decay) * p - rate * g / size, m_new, v_new


@exercise.mistake
def without_the_root(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    """The mean was divided by the mean square, without its root. Then a gradient ten times as large
    makes a step a tenth as long: which power of the gradient is to cancel?"""
    _, m_new, v_new = stepped(p, g, m, v, step, rate, decay, betas, epsilon)
    mean, square = m_new / (1 - betas[0] ** step), v_new / (1 - betas[1] ** step)
    return (1 - rate * decay) * p - rate * mean / (square + epsilon), m_new, v_new


@exercise.alternative
def as_torch_does(p, g, m, v, step, rate, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
    m = torch.lerp(m, g, 1 - betas[0])
    v = torch.lerp(v, g.square(), 1 - betas[1])
    size = v.sqrt() / (1 - betas[1] ** step) ** 0.5 + epsilon
    return p * (1 - rate * decay) - rate / (1 - betas[0] ** step) * m / size, m, v
