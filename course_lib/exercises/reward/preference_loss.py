"""A reward that is learned from which of two answers is better."""

import torch
from torch.nn import functional as F

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.reward import preference_loss

exercise = Exercise(
    reference=preference_loss,
    lesson="18",
    title="A reward that agrees with preferences",
    minutes=4,
    difficulty=1,
    clauses={
        "the chance that the first is preferred": "chosen_and_rejected_exchanged",
        "It stays exact": "log_of_sigmoid",
    },
    hints=(
        "Only the difference of the two rewards matters. Which sign does it have where they agree "
        "with the preference?",
        "sigmoid(-1000) is 0 in floating point, and its logarithm minus infinity, where -1000 is "
        "right. Which function of torch takes both steps at once?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "one pair", (draw.normal(1), draw.normal(1))
    yield "three pairs", (2 * draw.normal(3), 2 * draw.normal(3))
    yield "large rewards, small differences", (100 + draw.normal(4), 100 + draw.normal(4))
    same = draw.normal(5)
    yield "no difference", (same.clone(), same)
    yield "a thousand better", (torch.tensor([500.0, 3.0]), torch.tensor([-500.0, 2.0]))
    yield "a thousand worse", (torch.tensor([-500.0, 3.0]), torch.tensor([500.0, 2.0]))


@exercise.edges
def edges(draw: Draw):
    yield "nearly a hundred worse", (-draw.integers(90, 99, 3).float(), draw.normal(3) / 9)


@exercise.requires("a number added to all rewards changes nothing")
def offset(answer, draw: Draw):
    chosen, rejected = draw.normal(6), draw.normal(6)
    found = answer(chosen, rejected)
    return found > 0.01 and torch.allclose(found, answer(chosen + 3, rejected + 3), atol=1e-4)


@exercise.requires("the loss falls as the chosen answer's reward rises")
def falls(answer, draw: Draw):
    chosen, rejected = draw.normal(6), draw.normal(6)
    return 0 < answer(chosen + 1, rejected) < answer(chosen, rejected)


stock.exchanged(
    exercise,
    "chosen",
    "rejected",
    "The loss falls as the rejected answer's reward rises: chosen and rejected have changed "
    "places, or the difference has the wrong sign.",
)


@exercise.mistake
def sign(chosen, rejected):
    """The result is negative: the minus before the logarithm is missing, so the loss would be
    smallest where the rewards are most wrong."""
    return -preference_loss(chosen, rejected)


@exercise.mistake
def no_logarithm(chosen, rejected):
    """There is a sigmoid and no logarithm: where the rewards are most wrong the gradient would
    vanish."""
    return -torch.sigmoid(chosen - rejected).mean()


@exercise.mistake
def no_sigmoid(chosen, rejected):
    """The difference itself was averaged, without sigmoid and logarithm, so the loss would fall
    without end."""
    return -(chosen - rejected).mean()


@exercise.mistake
def each_alone(chosen, rejected):
    """Each reward went through a sigmoid of its own, so 0 is a border between good and bad. Nobody
    said that any answer is good, only which of two is better."""
    return -(F.logsigmoid(chosen) + F.logsigmoid(-rejected)).mean()


@exercise.mistake
def log_of_sigmoid(chosen, rejected):
    """Right for small differences; for large ones an exponential is infinite, or the sigmoid 0, and
    the logarithm is taken of that. Which function computes log sigmoid in one piece?"""
    return -torch.log(torch.sigmoid(chosen - rejected)).mean()


@exercise.mistake
def added_up(chosen, rejected):
    """The losses of the pairs were added up. A mean is asked for."""
    return -F.logsigmoid(chosen - rejected).sum()


@exercise.mistake
def not_averaged(chosen, rejected):
    """There is a loss for each pair: their mean is missing."""
    return -F.logsigmoid(chosen - rejected)


@exercise.mistake
def mean_margin(chosen, rejected):
    """The differences were averaged before the sigmoid, so one pair makes up for another. The mean
    is over the losses."""
    return -F.logsigmoid((chosen - rejected).mean())


@exercise.mistake
def quotient(chosen, rejected):
    """The rewards were divided by each other. By how much is one better?"""
    return -F.logsigmoid(chosen / rejected).mean()


@exercise.alternative
def by_softplus(chosen, rejected):
    return F.softplus(rejected - chosen).mean()


@exercise.alternative
def two_classes(chosen, rejected):
    return -torch.stack([chosen, rejected], -1).log_softmax(-1)[..., 0].mean()
