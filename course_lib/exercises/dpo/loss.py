"""Of two answers, make the better one likelier, relative to the model as it was."""

import torch
from torch.nn import functional as F

from course_lib.assistant import preference_loss
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=preference_loss,
    lesson="17_preferences",
    title="The better of two answers",
    minutes=6,
    difficulty=2,
    hints=(
        "All four are logarithms of probabilities. How much likelier has the chosen answer become "
        "than it was before, and the rejected one? By how much should the first exceed the second?",
        "sigmoid(-1000) is 0 in floating point, and its logarithm minus infinity, where -1000 is "
        "right. Which function of torch takes both steps at once?",
    ),
    constants=("chosen_before", "rejected_before"),
    clauses={
        "c and r are log p": "rejected_preferred",
        "It stays exact where the sigmoid": "log_of_sigmoid",
    },
)


def pairs(draw: Draw, count: int, beta: float):
    return *(2 * draw.normal(count) - 20 for _ in range(4)), beta


@exercise.cases
def cases(draw: Draw):
    yield "one pair", (*(draw.normal(1) / 2 - 9 for _ in range(4)), 1.0)
    yield "three pairs, beta a tenth", pairs(draw, 3, 0.1)
    yield "five pairs, beta a half", pairs(draw, 5, 0.5)
    yield "beta larger than 1", pairs(draw, 4, 2.0)
    chosen, rejected = draw.normal(4) - 9, draw.normal(4) - 9
    yield "nothing has changed yet", (chosen, rejected, chosen, rejected, 0.3)
    zero = torch.zeros(2)
    yield "a margin of a thousand", (zero, zero - 1000, zero, zero, 1.0)
    yield "a margin of minus a thousand", (zero - 1000, zero, zero, zero, 1.0)
    far = torch.tensor([1000.0, -1000.0, 3.0])
    yield "some margins far, one near", (far, torch.zeros(3), *pairs(draw, 3, 1.0)[:2], 1.0)


@exercise.edges
def edges(draw: Draw):
    zero = torch.zeros(2)
    yield (
        "margins of minus a hundred, or nearly",
        (zero - draw.integers(90, 99, 2), *[zero] * 3, 1.0),
    )


@exercise.requires("before the first step the loss is log 2")
def begins_at_log_2(answer, draw: Draw):
    chosen, rejected = draw.normal(6) - 9, draw.normal(6) - 9
    found = answer(chosen, rejected, chosen, rejected, 0.7)
    return torch.allclose(found, torch.tensor(2.0).log(), atol=1e-5)


@exercise.requires(
    "the loss falls where the chosen answer gains, and rises where the rejected does"
)
def gains(answer, draw: Draw):
    chosen, rejected, *before = pairs(draw, 4, 0.2)
    plain = answer(chosen, rejected, *before)
    better, worse = answer(chosen + 1, rejected, *before), answer(chosen, rejected + 1, *before)
    return better < plain < worse


def loss(margin):
    return -F.logsigmoid(margin).mean()


@exercise.mistake
def rejected_preferred(chosen, rejected, chosen_before, rejected_before, beta):
    """The loss falls as the rejected answer becomes likelier: chosen and rejected have changed
    places, or the margin has the wrong sign."""
    return loss(beta * ((rejected - rejected_before) - (chosen - chosen_before)))


@exercise.mistake
def sign(chosen, rejected, chosen_before, rejected_before, beta):
    """The result is negative: the minus before the logarithm is missing, so the loss would be
    smallest where the model is most wrong."""
    return -preference_loss(chosen, rejected, chosen_before, rejected_before, beta)


@exercise.mistake
def before_forgotten(chosen, rejected, chosen_before, rejected_before, beta):
    """The model as it was is never asked, so an answer that was always likelier, such as a shorter
    one, already counts as preferred. By how much has each answer gained?"""
    return loss(beta * (chosen - rejected))


@exercise.mistake
def before_added(chosen, rejected, chosen_before, rejected_before, beta):
    """What the model said before was added to the margin and not taken away. Look at the signs
    inside the brackets."""
    return loss(beta * ((chosen + chosen_before) - (rejected + rejected_before)))


@exercise.mistake
def brackets(chosen, rejected, chosen_before, rejected_before, beta):
    """The sign of the rejected answer before is wrong: a minus before a bracket turns both signs
    inside."""
    return loss(beta * (chosen - chosen_before - rejected - rejected_before))


@exercise.mistake
def gains_added(chosen, rejected, chosen_before, rejected_before, beta):
    """The two gains were added, so the loss falls as the rejected answer becomes likelier too. How
    much more has the chosen one gained?"""
    return loss(beta * ((chosen - chosen_before) + (rejected - rejected_before)))


@exercise.mistake
def beta_outside(chosen, rejected, chosen_before, rejected_before, beta):
    """beta multiplies the loss, where it only scales the step. Inside of the sigmoid it says how
    large a margin has to be."""
    return beta * loss((chosen - chosen_before) - (rejected - rejected_before))


@exercise.mistake
def divided_by_beta(chosen, rejected, chosen_before, rejected_before, beta):
    """The margin was divided by beta. In the formula it is multiplied."""
    return loss(((chosen - chosen_before) - (rejected - rejected_before)) / beta)


@exercise.mistake
def beta_on_one(chosen, rejected, chosen_before, rejected_before, beta):
    """beta multiplies the gain of the chosen answer alone: a pair of brackets is missing."""
    return loss(beta * (chosen - chosen_before) - (rejected - rejected_before))


@exercise.mistake
def no_logarithm(chosen, rejected, chosen_before, rejected_before, beta):
    """There is a sigmoid and no logarithm: where the model is most wrong the gradient would
    vanish."""
    margin = beta * ((chosen - chosen_before) - (rejected - rejected_before))
    return -torch.sigmoid(margin).mean()


@exercise.mistake
def no_sigmoid(chosen, rejected, chosen_before, rejected_before, beta):
    """The margin itself was averaged, without sigmoid and logarithm, so the loss would fall without
    end."""
    return -(beta * ((chosen - chosen_before) - (rejected - rejected_before))).mean()


@exercise.mistake
def log_of_sigmoid(chosen, rejected, chosen_before, rejected_before, beta):
    """Right for small margins; for large ones an exponential is infinite, or the sigmoid 0, and the
    logarithm is taken of that. Which function computes log sigmoid in one piece?"""
    margin = beta * ((chosen - chosen_before) - (rejected - rejected_before))
    return -torch.log(torch.sigmoid(margin)).mean()


@exercise.mistake
def added_up(chosen, rejected, chosen_before, rejected_before, beta):
    """The losses of the pairs were added up. A mean is asked for, or a larger batch would take
    larger steps."""
    losses = -F.logsigmoid(beta * ((chosen - chosen_before) - (rejected - rejected_before)))
    return losses.sum()


@exercise.mistake
def not_averaged(chosen, rejected, chosen_before, rejected_before, beta):
    """There is a loss for each pair: their mean is missing."""
    return -F.logsigmoid(beta * ((chosen - chosen_before) - (rejected - rejected_before)))


@exercise.mistake
def mean_margin(chosen, rejected, chosen_before, rejected_before, beta):
    """The margins were averaged before the sigmoid, so one pair makes up for another. The mean is
    over the losses."""
    margin = beta * ((chosen - chosen_before) - (rejected - rejected_before))
    return -F.logsigmoid(margin.mean())


@exercise.mistake
def quotients(chosen, rejected, chosen_before, rejected_before, beta):
    """Logarithms were divided by each other. The ratio of two probabilities is a difference of
    their logarithms."""
    return loss(beta * (chosen / chosen_before - rejected / rejected_before))


@exercise.alternative
def by_softplus(chosen, rejected, chosen_before, rejected_before, beta):
    ratios, before = chosen - rejected, chosen_before - rejected_before
    return F.softplus(-beta * (ratios - before)).mean()


@exercise.alternative
def two_classes(chosen, rejected, chosen_before, rejected_before, beta):
    gains = torch.stack([chosen - chosen_before, rejected - rejected_before], -1)
    return -(beta * gains).log_softmax(-1)[:, 0].sum() / len(chosen)
