"""What makes good answers likelier, and not too much at once."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.reward import policy_loss

exercise = Exercise(
    reference=policy_loss,
    lesson="18",
    title="The clipped loss",
    minutes=10,
    difficulty=3,
    clauses={
        "under the model that learns": "upside_down",
        "An advantage A counts for each token": "along_the_tokens",
        "the mean is over all tokens": "mask_forgotten",
    },
    hints=(
        "The log-probabilities have a row for each answer and a column for each token, the "
        "advantages one number for each answer. Which axis does the advantage lack?",
        "A quotient of two probabilities: what is it in their logarithms?",
        "Take an advantage of 1 and a ratio of 1.5: the two products are 1.5 and 1.2. Now an "
        "advantage of -1. Which of the two products is the smaller one each time?",
        "A boolean tensor as an index keeps what is True, in one long row.",
    ),
    constants=("old",),
    # an advantage has one axis: the second is its last
    equivalent=("-1 -> 1",),
    small_only="the ratio is an exponential, and a model that far from itself has lost its way",
)


def answers(draw: Draw, group: int, n: int, moved: float = 0.5):
    """Draw log-probabilities before and after, advantages, and answers of unequal lengths."""
    old = -draw.normal(group, n).abs() - 0.5
    lengths = draw.integers(1, n + 1, group)
    lengths[0] = n
    mask = torch.arange(n) < lengths.unsqueeze(-1)
    return old + moved * draw.normal(group, n), old, draw.normal(group), mask


@exercise.cases
def cases(draw: Draw):
    true = torch.ones(1, 2, dtype=torch.bool)
    old = -draw.normal(1, 2).abs() - 0.5
    yield "one answer, before the first step", (old.clone(), old, torch.tensor([1.5]), true)
    yield "ratios within the clip", (
        old + torch.tensor([[0.1, -0.1]]), old, torch.tensor([2.0]), true,
    )  # fmt: skip
    yield "a good answer, likelier and unlikelier", (
        old + torch.tensor([[0.9, -0.9]]), old, torch.tensor([1.0]), true,
    )  # fmt: skip
    yield "a bad answer, likelier and unlikelier", (
        old + torch.tensor([[0.9, -0.9]]), old, torch.tensor([-1.0]), true,
    )  # fmt: skip
    yield "a group of answers", answers(draw, 4, 3)
    yield "as many answers as tokens", answers(draw, 5, 5)
    yield "one token each", answers(draw, 6, 1)
    yield "far from the old ones", answers(draw, 3, 7, moved=1.5)
    yield "a wider clip", (*answers(draw, 4, 6, moved=1.0), 0.6)
    yield "a narrower clip", (*answers(draw, 4, 6), 0.05)


@exercise.edges
def edges(draw: Draw):
    new, old, advantages, _ = answers(draw, 3, 4)
    holes = torch.tensor([[1, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 0]]) > 0
    yield "a hole in an answer, and padding on the left", (new, old, advantages, holes)


@exercise.requires("what stands outside of the mask changes nothing")
def mask_holds(answer, draw: Draw):
    new, old, advantages, mask = answers(draw, 4, 6)
    mask[1:, 3:] = False
    found = answer(new, old, advantages, mask)
    changed = torch.where(mask, new, new + draw.normal(4, 6))
    return found.abs() > 1e-4 and torch.allclose(found, answer(changed, old, advantages, mask))


@exercise.requires("a good answer far above the clip, or a bad one far below, gains no more")
def flat(answer, draw: Draw):
    _, old, advantages, mask = answers(draw, 5, 4)
    advantages = advantages.sign() * (1 + advantages.abs())
    far = old + advantages.sign().unsqueeze(-1)
    further = old + 2 * advantages.sign().unsqueeze(-1)
    found = answer(far, old, advantages, mask)
    return found.abs() > 1e-4 and torch.allclose(found, answer(further, old, advantages, mask))


def products(new, old, advantages, clip):
    ratio, advantage = torch.exp(new - old), advantages.unsqueeze(-1)
    return ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage


@exercise.mistake
def sign(new, old, advantages, mask, clip=0.2):
    """The sign is wrong: what is made small here is the gain, so good answers become unlikelier."""
    return -policy_loss(new, old, advantages, mask, clip)


@exercise.mistake
def larger_product(new, old, advantages, mask, clip=0.2):
    """The larger of the two products was taken. Then there is no limit to how far a step may go:
    the clip bites where the model has moved the wrong way."""
    return -torch.maximum(*products(new, old, advantages, clip))[mask].mean()


@exercise.mistake
def never_clipped(new, old, advantages, mask, clip=0.2):
    """There is no clip: the ratio alone is multiplied with the advantage, and nothing stops a step
    on old answers from going too far."""
    return -products(new, old, advantages, clip)[0][mask].mean()


@exercise.mistake
def always_clipped(new, old, advantages, mask, clip=0.2):
    """The clipped product alone was taken. Where the model has moved the wrong way, beyond the
    clip, it has no gradient then, and nothing brings it back."""
    return -products(new, old, advantages, clip)[1][mask].mean()


@exercise.mistake
def upper_side_alone(new, old, advantages, mask, clip=0.2):
    """The ratio is held below 1 + clip, and not above 1 - clip. On which side does a bad answer
    gain by going further?"""
    ratio, advantage = torch.exp(new - old), advantages.unsqueeze(-1)
    gain = torch.minimum(ratio * advantage, ratio.clamp(max=1 + clip) * advantage)
    return -gain[mask].mean()


@exercise.mistake
def ratio_first(new, old, advantages, mask, clip=0.2):
    """The smaller of the two ratios was taken, and then multiplied. With a negative advantage the
    smaller ratio makes the larger product: multiply first."""
    ratio = torch.exp(new - old)
    least = torch.minimum(ratio, ratio.clamp(1 - clip, 1 + clip))
    return -(least * advantages.unsqueeze(-1))[mask].mean()


@exercise.mistake
def no_ratio(new, old, advantages, mask, clip=0.2):
    """log p itself was multiplied with the advantage. For the first step on fresh answers that has
    the same gradient; for a second one the ratio to the old probability is needed."""
    return -(new * advantages.unsqueeze(-1))[mask].mean()


@exercise.mistake
def no_exponential(new, old, advantages, mask, clip=0.2):
    """The difference of the logarithms was taken for the ratio. It is 0 where nothing has changed,
    and the ratio is 1 there."""
    ratio, advantage = new - old, advantages.unsqueeze(-1)
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    return -gain[mask].mean()


@exercise.mistake
def upside_down(new, old, advantages, mask, clip=0.2):
    """The ratio is upside down: old over new. A token that has become likelier has a ratio above
    1."""
    return policy_loss(old, new, advantages, mask, clip)


@exercise.mistake
def quotient_of_logarithms(new, old, advantages, mask, clip=0.2):
    """Logarithms were divided by each other. The ratio of two probabilities is the exponential of
    their difference."""
    ratio, advantage = new / old, advantages.unsqueeze(-1)
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    return -gain[mask].mean()


@exercise.mistake
def mask_forgotten(new, old, advantages, mask, clip=0.2):
    """The mean runs over all places, also over those behind the end of an answer. Which of them are
    the answers' tokens?"""
    return -torch.minimum(*products(new, old, advantages, clip)).mean()


@exercise.mistake
def divided_by_places(new, old, advantages, mask, clip=0.2):
    """Only the answers' tokens are added up, but the sum is divided by all places. A mean over the
    tokens is asked for."""
    return -(torch.minimum(*products(new, old, advantages, clip)) * mask).mean()


@exercise.mistake
def mean_of_means(new, old, advantages, mask, clip=0.2):
    """The mean of each answer was taken first, and then the mean of these, so a token of a long
    answer counts for less. That is how GRPO was first written; here all tokens count alike."""
    gain = torch.minimum(*products(new, old, advantages, clip)) * mask
    return -(gain.sum(-1) / mask.sum(-1)).mean()


@exercise.mistake
def added_up(new, old, advantages, mask, clip=0.2):
    """The gains were added up. A mean is asked for, or longer answers would take larger steps."""
    return -torch.minimum(*products(new, old, advantages, clip))[mask].sum()


@exercise.mistake
def whole_answers(new, old, advantages, mask, clip=0.2):
    """The ratio is one of whole answers here. Each token has a ratio of its own, which is clipped
    alone."""
    moved = ((new - old) * mask).sum(-1, keepdim=True).expand(mask.shape)
    return policy_loss(moved, torch.zeros_like(moved), advantages, mask, clip)


@exercise.mistake(raises=(RuntimeError, IndexError))
def along_the_tokens(new, old, advantages, mask, clip=0.2):
    """An advantage was given to each column. There is one for each answer, and an answer is a row:
    which axis does `advantages` lack?"""
    ratio = torch.exp(new - old)
    gain = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    return -gain[mask].mean()


@exercise.alternative
def case_by_case(new, old, advantages, mask, clip=0.2):
    ratio, advantage = (new - old).exp(), advantages[:, None].expand(new.shape)
    good = torch.where(ratio > 1 + clip, torch.full_like(ratio, 1 + clip), ratio)
    bad = torch.where(ratio < 1 - clip, torch.full_like(ratio, 1 - clip), ratio)
    gain = advantage * torch.where(advantage > 0, good, bad)
    return -(gain.masked_fill(~mask, 0.0).sum() / mask.sum())


@exercise.alternative
def largest_loss(new, old, advantages, mask, clip=0.2):
    ratio, advantage = torch.exp(new[mask] - old[mask]), advantages.unsqueeze(-1)
    advantage = advantage.expand(mask.shape)[mask]
    clipped = torch.clip(ratio, 1 - clip, 1 + clip)
    return torch.maximum(-ratio * advantage, -clipped * advantage).mean()
