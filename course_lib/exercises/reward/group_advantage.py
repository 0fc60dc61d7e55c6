"""What an answer is worth beside the others to its question."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.reward import group_advantage

exercise = Exercise(
    reference=group_advantage,
    lesson="18",
    title="Better than the rest of the group",
    # the reference has no gradient itself
    equivalent=("detached",),
    minutes=6,
    difficulty=1,
    clauses={"it has no gradient": "learned_through"},
    hints=(
        "A reward says nothing alone. What is the mean of one group, and along which axis are its "
        "answers? Which shape must it have, so that you can take it from every reward?",
        "Where all rewards are equal, the standard deviation is 0. What is added to it, and what "
        "is 0 divided by that?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "one of two is right", (torch.tensor([1.0, 0.0]),)
    yield "one of four is right", (torch.tensor([0.0, 1.0, 0.0, 0.0]),)
    yield "rewards of all sizes", (draw.normal(5),)
    yield "two groups", (3 * draw.normal(2, 4) + 1,)
    yield (
        "all wrong, all right, and half",
        (torch.tensor([[0.0, 0, 0, 0], [1.0, 1, 1, 1], [0.0, 1, 1, 0]]),),
    )
    yield "two batch dimensions", (draw.normal(3, 2, 5),)
    yield "as many groups as answers", (2 * draw.normal(4, 4) - 1,)
    yield "rewards that hardly differ", (0.0002 * draw.normal(3, 6),)
    yield "another eps", (draw.normal(2, 3), 0.5)


@exercise.edges
def edges(draw: Draw):
    # sixteenths, of which the mean of four is exact
    yield "large rewards that hardly differ", (1000 + draw.integers(0, 9, 3, 4) / 16,)


@exercise.requires("what all answers of a group get beside changes nothing")
def baseline(answer, draw: Draw):
    rewards = draw.normal(3, 6)
    found, moved = answer(rewards), answer(rewards + torch.tensor([[5.0], [-2.0], [1.0]]))
    return found.abs().max() > 0.1 and torch.allclose(found, moved, atol=1e-4)


@exercise.requires("a group's advantages add up to nothing")
def sums_to_zero(answer, draw: Draw):
    found = answer(2 * draw.normal(4, 7) + 3)
    return found.abs().max() > 0.1 and found.sum(-1).abs().max() < 1e-3


def deviations(rewards, dim=-1, **named):
    return rewards - rewards.mean(dim, keepdim=True), rewards.std(dim, keepdim=True, **named)


@exercise.mistake
def over_groups(rewards, eps=1e-4):
    """The mean and the deviation run over the first axis, so answers to different questions are
    compared, and an easy question makes all of its answers good. The answers to one question are
    along the last axis."""
    if rewards.dim() < 2:
        return group_advantage(rewards, eps)
    centred = rewards - rewards.mean(0, keepdim=True)
    return centred / (rewards.std(0, keepdim=True) + eps)


@exercise.mistake
def over_all(rewards, eps=1e-4):
    """One mean and one deviation were taken of all groups together, so an easy question makes all
    of its answers good. Each group has its own."""
    return (rewards - rewards.mean()) / (rewards.std() + eps)


@exercise.mistake
def mean_alone(rewards, eps=1e-4):
    """The mean is taken off, and nothing is divided. That is a method of its own (Dr. GRPO), but
    here the group's standard deviation is the unit."""
    return deviations(rewards)[0]


@exercise.mistake
def spread_alone(rewards, eps=1e-4):
    """The rewards are divided by their deviation, but the mean was not taken off, so with rewards
    of 0 and 1 no answer is ever bad."""
    return rewards / (deviations(rewards)[1] + eps)


@exercise.mistake
def divided_by_n(rewards, eps=1e-4):
    """The standard deviation divides by n here. Torch's own divides by n - 1."""
    centred, spread = deviations(rewards, correction=0)
    return centred / (spread + eps)


@exercise.mistake
def variance(rewards, eps=1e-4):
    """The rewards are divided by their variance. Its root is the standard deviation."""
    centred, spread = deviations(rewards)
    return centred / (spread**2 + eps)


@exercise.mistake
def without_eps(rewards, eps=1e-4):
    """A group of equal rewards gives NaN, which ruins every weight of the model in one step. What
    keeps 0 / 0 away?"""
    centred, spread = deviations(rewards)
    return centred / spread


@exercise.mistake
def eps_at_least(rewards, eps=1e-4):
    """The standard deviation was kept from falling below eps, and eps was not added: a group that
    differs by more has none of it. What does the formula divide by, in every group?"""
    centred, spread = deviations(rewards.detach())
    return centred / spread.clamp(min=eps)


@exercise.mistake
def eps_inside(rewards, eps=1e-4):
    """eps was added to the variance, under the root. It is added to the standard deviation."""
    centred, spread = deviations(rewards)
    return centred / (spread**2 + eps).sqrt()


@exercise.mistake
def mean_of_squares(rewards, eps=1e-4):
    """The variance is the mean of the squares less the square of the mean. In large rewards that
    hardly differ both are nearly the same number, and rounding is all that is left, or the root of
    something negative. What do you have once the mean is taken off?"""
    rewards, n = rewards.detach(), rewards.shape[-1]
    mean = rewards.mean(-1, keepdim=True)
    variance = (rewards.square().mean(-1, keepdim=True) - mean.square()) * n / (n - 1)
    return (rewards - mean) / (variance.sqrt() + eps)


@exercise.mistake
def sign(rewards, eps=1e-4):
    """The sign is wrong: the best answers of a group have the lowest advantage, and would become
    less likely."""
    return -group_advantage(rewards, eps)


@exercise.mistake
def median(rewards, eps=1e-4):
    """The middle reward was taken off, and not the mean. Then a group's advantages do not add up to
    nothing."""
    middle = rewards.median(-1, keepdim=True).values
    return (rewards - middle) / (deviations(rewards)[1] + eps)


@exercise.mistake
def learned_through(rewards, eps=1e-4):
    """A gradient flows back through the advantages into the rewards. They are numbers to learn by:
    what cuts a tensor off from where it came?"""
    centred, spread = deviations(rewards)
    return centred / (spread + eps)


@exercise.mistake
def softmax(rewards, eps=1e-4):
    """Each answer has a share of the whole, which is never below 0: no answer would become less
    likely. How far is a reward from the mean of its group?"""
    return rewards.softmax(-1)


@exercise.alternative
def by_hand(rewards, eps=1e-4):
    rewards = rewards.detach()
    count = rewards.shape[-1]
    centred = rewards - rewards.sum(-1, keepdim=True) / count
    spread = ((centred**2).sum(-1, keepdim=True) / (count - 1)).sqrt()
    return centred / (spread + eps)
