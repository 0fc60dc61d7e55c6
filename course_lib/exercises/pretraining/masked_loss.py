"""The loss of a masked language model: score only what is asked for."""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import Draw, Exercise
from course_lib.pretraining import masked_loss

exercise = Exercise(
    reference=masked_loss,
    lesson="16",
    title="Score only what is asked for",
    minutes=8,
    difficulty=2,
    hints=(
        "A boolean tensor as an index picks rows. Which comparison of `targets` says where "
        "something is asked for, and what is the shape of `states` indexed by it?",
        "Each token of the vocabulary has a row in the table. Which product gives a state's score "
        "with every one of them?",
        "`F.cross_entropy` takes scores and targets. How many targets are left, and which?",
    ),
    clauses={
        "A target of -100 is none": "divided_by_all",
        "meet the table": "every_place_scored",
        "the loss is 0": "no target at all",
        "and so is its gradient": "gradients flow",
    },
)


def some_targets(draw: Draw, *shape: int, vocab: int):
    """Draw targets, of which about two thirds are none; the first and the last are."""
    targets = draw.integers(0, vocab, *shape)
    none = draw.normal(*shape) < 0.4
    none.view(-1)[0], none.view(-1)[-1] = False, False
    return targets.masked_fill(none, -100)


@exercise.cases
def cases(draw: Draw):
    yield "one target of three places", (
        draw.normal(3, 2), draw.normal(4, 2), torch.tensor([-100, 1, -100]),
    )  # fmt: skip
    yield "all places have one", (draw.normal(4, 3), draw.normal(5, 3), draw.integers(0, 5, 4))
    yield "a batch of texts", (
        draw.normal(3, 6, 4), draw.normal(7, 4), some_targets(draw, 3, 6, vocab=7),
    )  # fmt: skip
    rows = torch.full((3, 5), -100)
    rows[0, 2:], rows[2, 1] = draw.integers(0, 6, 3), 4
    yield "a text with three, one with none, one with one", (
        draw.normal(3, 5, 4), draw.normal(6, 4), rows,
    )  # fmt: skip
    yield "two batch dimensions", (
        draw.normal(2, 3, 4, 5), draw.normal(6, 5), some_targets(draw, 2, 3, 4, vocab=6),
    )  # fmt: skip
    yield "as many tokens as numbers in a state", (
        draw.normal(2, 3, 4), draw.normal(4, 4), some_targets(draw, 2, 3, vocab=4),
    )  # fmt: skip
    yield "one place", (draw.normal(1, 3), draw.normal(4, 3), torch.tensor([2]))
    yield "as many places as numbers in a state", (
        draw.normal(3, 3), draw.normal(5, 3), torch.tensor([4, -100, 1]),
    )  # fmt: skip
    yield "token 0 is a target like any other", (
        draw.normal(5, 3), draw.normal(4, 3), torch.tensor([0, -100, 0, 2, -100]),
    )  # fmt: skip
    yield "no target at all", (draw.normal(3, 4), draw.normal(5, 4), torch.full((3,), -100))


@exercise.requires("places without a target change nothing")
def others_are_nothing(answer, draw: Draw):
    states, table, targets = draw.normal(3, 6, 4), draw.normal(7, 4), torch.full((3, 6), -100)
    targets[:, 1:3] = draw.integers(0, 7, 3, 2)
    changed = torch.where((targets == -100).unsqueeze(-1), 9 * draw.normal(3, 6, 4), states)
    plain = answer(states, table, targets)
    return plain > 0 and torch.allclose(plain, answer(changed, table, targets), atol=1e-5)


@exercise.requires("the table meets only the states that are asked for", points=2)
def only_the_chosen(answer, draw: Draw):
    # 40 places, 100 tokens, 5 targets in as many columns: all scores would be 4,000 numbers
    targets = torch.full((5, 8), -100)
    places = draw.normal(8).argsort()[:5]
    targets[torch.arange(5), places] = draw.integers(0, 100, 5)
    found = answer(draw.normal(5, 8, 4), draw.normal(100, 4), targets, max_numel=1999)
    return found.shape == ()


def losses(states, table, targets):
    """Return the loss of each place with a target."""
    asked = targets != -100
    return F.cross_entropy(states[asked] @ table.mT, targets[asked], reduction="none")


def none(states, targets):
    """Return a zero where nothing is asked for."""
    return states[..., :0].sum() if (targets == -100).all() else None


@exercise.mistake(raises=MemoryError)
def every_place_scored(states, table, targets):
    """The loss is right, but every place was scored with the whole vocabulary, and most scores were
    thrown away. Which states do you need?"""
    if none(states, targets) is not None:
        return none(states, targets)
    return F.cross_entropy((states @ table.mT).flatten(0, -2), targets.flatten())


@exercise.mistake
def divided_by_all(states, table, targets):
    """The losses were divided by the number of all places. Places without a target bring no loss:
    should they count?"""
    if none(states, targets) is not None:
        return none(states, targets)
    return losses(states, table, targets).sum() / targets.numel()


@exercise.mistake
def added_up(states, table, targets):
    """The losses were added up. A mean is asked for, or a longer text would cost more."""
    if none(states, targets) is not None:
        return none(states, targets)
    return losses(states, table, targets).sum()


@exercise.mistake(raises=MemoryError)
def others_ask_for_zero(states, table, targets):
    """Places without a target were asked for token 0. Which places should be left out?"""
    return F.cross_entropy((states @ table.mT).flatten(0, -2), targets.clamp(min=0).flatten())


@exercise.mistake
def zero_left_out(states, table, targets):
    """Targets that are token 0 were left out: only -100 means that nothing is asked for."""
    asked = targets > 0
    if not asked.any():
        return states[..., :0].sum()
    return F.cross_entropy(states[asked] @ table.mT, targets[asked])


@exercise.mistake
def mean_of_means(states, table, targets):
    """The mean of each text was taken first, and then the mean of these, so a text with few targets
    weighs as much as one with many."""
    if states.dim() < 3:
        return masked_loss(states, table, targets)
    rows = [
        masked_loss(row, table, of)
        for row, of in zip(states.flatten(0, -3), targets.flatten(0, -2), strict=True)
        if (of != -100).any()
    ]
    return torch.stack(rows).mean() if rows else states[..., :0].sum()


@exercise.mistake
def sign(states, table, targets):
    """The sign is wrong: a loss is -log p, which is not negative."""
    return -masked_loss(states, table, targets)


@exercise.mistake
def bits(states, table, targets):
    """This is the loss in bits: log to the base 2. Nats are asked for."""
    return masked_loss(states, table, targets) / torch.tensor(2.0).log().to(states)


@exercise.mistake
def average_state(states, table, targets):
    """The states were averaged before they were scored, so all targets were asked of one state. The
    mean is to be taken over the losses."""
    asked = targets != -100
    if not asked.any():
        return states[..., :0].sum()
    mean = states[asked].mean(0).expand(int(asked.sum()), -1)
    return F.cross_entropy(mean @ table.mT, targets[asked])


@exercise.alternative
def by_places(states, table, targets):
    places = torch.nonzero(targets.flatten() != -100).squeeze(-1)
    if len(places) == 0:
        return states[..., :0].sum()
    chosen = states.reshape(-1, states.shape[-1]).index_select(0, places)
    scores = torch.einsum("id,vd->iv", chosen, table)
    asked = targets.flatten()[places]
    return (torch.logsumexp(scores, -1) - scores[torch.arange(len(asked)), asked]).mean()
