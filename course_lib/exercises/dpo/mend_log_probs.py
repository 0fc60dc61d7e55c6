"""How likely a model finds an answer, with a fault: to be mended."""

import torch
from torch.nn import functional as F

from course_lib.assistant import answer_log_probs
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=answer_log_probs,
    lesson="17_preferences",
    title="Find the bug: an answer less likely the longer its prompt",
    minutes=6,
    difficulty=2,
    # two names of one axis; any token will do where what is looked up is thrown away
    equivalent=("-1 -> 1", "0 -> 1"),
    hints=(
        "Rows in which every place has a target pass. Take a row of three places whose only target "
        "is at the last one: which three numbers does the code add?",
        "Which token is looked up at a place without a target, and what should that place bring to "
        "the sum?",
    ),
    clauses={
        "A target of -100 is none": "mean_over_places",
        "has the sum 0": "a row without a target",
        "Scores are logits": "scores_added",
    },
)


def with_targets(draw: Draw, n: int, vocab: int, *spans: tuple[int, int]):
    """Draw scores, and targets from the first place of a span to its last, for each row."""
    first, last = torch.tensor(spans).unsqueeze(-1).unbind(1)
    places = torch.arange(n)
    targets = draw.integers(0, vocab, len(spans), n)
    counts = (places >= first) & (places < last)
    return 2 * draw.normal(len(spans), n, vocab), targets.masked_fill(~counts, -100)


@exercise.cases
def cases(draw: Draw):
    yield "every place has a target", with_targets(draw, 3, 4, (0, 3))
    yield "one place", with_targets(draw, 1, 3, (0, 1), (0, 1))
    yield "a prompt of two places", with_targets(draw, 4, 5, (2, 4))
    yield "padding behind the answer", with_targets(draw, 5, 3, (0, 2))
    yield "rows of unequal lengths", with_targets(draw, 7, 5, (1, 4), (3, 6), (2, 7))
    yield "one target of many places", with_targets(draw, 12, 4, (9, 10))
    yield "a row without a target", with_targets(draw, 4, 6, (2, 2), (1, 3))
    yield "as many rows as places", with_targets(draw, 4, 5, (0, 3), (2, 4), (1, 2), (3, 4))
    yield "as many tokens to choose from as places", with_targets(draw, 5, 5, (1, 4), (2, 5))
    scores, targets = with_targets(draw, 6, 4, (2, 5), (1, 4))
    yield "token 0 is a target like any other", (scores, targets.clamp(max=0))


@exercise.edges
def edges(draw: Draw):
    scores, targets = with_targets(draw, 4, 5, (1, 3), (2, 4))
    wanted = targets.unsqueeze(-1) == torch.arange(5)
    wanted[:, 2:] = False
    yield "a target that the scores rule out", (scores.masked_fill(wanted, -torch.inf), targets)
    scores, targets = with_targets(draw, 4, 5, (1, 3), (2, 4))
    scores[:, :, [0, -1]] = scores[:, :, [0, -1]].where(targets.unsqueeze(-1) != -100, -torch.inf)
    yield "scores that rule tokens out where there is no target", (scores, targets)


@exercise.requires("places without a target change nothing")
def others_are_nothing(answer, draw: Draw):
    scores, targets = with_targets(draw, 9, 5, (3, 7), (1, 9))
    others = torch.where((targets == -100).unsqueeze(-1), draw.normal(2, 9, 5), scores)
    plain = answer(scores, targets)
    return (plain < 0).all() and torch.allclose(plain, answer(others, targets), atol=1e-4)


@exercise.requires("two answers, one after the other, are as likely as the product of both")
def adds_up(answer, draw: Draw):
    scores, targets = with_targets(draw, 8, 5, (0, 8))
    first, second = targets.clone(), targets.clone()
    first[:, 3:], second[:, :3] = -100, -100
    both = answer(scores, first) + answer(scores, second)
    return (both < 0).all() and torch.allclose(answer(scores, targets), both, atol=1e-4)


def found(scores, targets):
    """Return log p of each target, 0 where there is none, and where there are some."""
    counts = targets != -100
    looked_up = targets.masked_fill(~counts, 0).unsqueeze(-1)
    log_probabilities = scores.log_softmax(-1).gather(-1, looked_up).squeeze(-1)
    return log_probabilities.masked_fill(~counts, 0.0), counts


@exercise.hand_out
def without_target_counted(scores, targets):
    """The fault was in the sum: places without a target brought log p of token 0, so each token of
    the prompt and of the padding made the answer look less likely, and long rows lost."""
    log_probabilities = scores.log_softmax(dim=-1)
    # find the places with a target; -100 is no token, and 0 takes its place
    counts = targets != -100
    looked_up = targets.masked_fill(~counts, 0).unsqueeze(-1)
    # look up what each target was given
    found = log_probabilities.gather(-1, looked_up).squeeze(-1)
    # add up each row
    return found.sum(dim=-1)


@exercise.mistake
def mean_over_targets(scores, targets):
    """Now each row is averaged over its targets. log p of an answer is a sum: its tokens'
    probabilities are multiplied."""
    log_probabilities, counts = found(scores, targets)
    return log_probabilities.sum(-1) / counts.sum(-1).clamp(min=1)


@exercise.mistake
def mean_over_places(scores, targets):
    """Places without a target bring nothing now, but each row is averaged over all its places. log
    p of an answer is a sum."""
    return found(scores, targets)[0].mean(-1)


@exercise.mistake
def probabilities_added(scores, targets):
    """Probabilities were added, without a logarithm. Those of tokens that follow each other are
    multiplied, and their logarithms added."""
    log_probabilities, counts = found(scores, targets)
    return (log_probabilities.exp() * counts).sum(-1)


@exercise.mistake
def scores_added(scores, targets):
    """The scores of the targets were added as they are. They are no logarithms of probabilities
    before `log_softmax`."""
    counts = targets != -100
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    return scores.gather(-1, chosen).squeeze(-1).masked_fill(~counts, 0.0).sum(-1)


@exercise.mistake
def zero_left_out(scores, targets):
    """Token 0 is left out now wherever it comes, also where it is a target. -100 alone says that a
    place has none."""
    return found(scores, targets.masked_fill(targets == 0, -100))[0].sum(-1)


@exercise.mistake
def last_token_instead(scores, targets):
    """Another token is looked up where there is no target, and it still counts. Which number should
    such a place bring to the sum?"""
    places = targets.masked_fill(targets == -100, scores.shape[-1] - 1).unsqueeze(-1)
    return scores.log_softmax(-1).gather(-1, places).squeeze(-1).sum(-1)


@exercise.mistake
def times_the_mask(scores, targets):
    """Places without a target were multiplied by 0, and infinity times 0 is NaN: a token that the
    scores rule out has the logarithm minus infinity. How can a number be dropped whatever it
    is?"""
    counts = targets != -100
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    return (scores.log_softmax(-1).gather(-1, chosen).squeeze(-1) * counts).sum(-1)


@exercise.mistake
def inverted(scores, targets):
    """Now the places without a target count, and the answer's own bring nothing: the mask is the
    wrong way round."""
    counts = targets != -100
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    return scores.log_softmax(-1).gather(-1, chosen).squeeze(-1).masked_fill(counts, 0.0).sum(-1)


@exercise.mistake
def sign(scores, targets):
    """The sum is right, but its sign is that of a loss. log p is asked for, which is never above
    0."""
    return -answer_log_probs(scores, targets)


@exercise.mistake
def not_added(scores, targets):
    """There is one number for each place: the sum over each row is missing."""
    return found(scores, targets)[0]


@exercise.mistake
def whole_batch(scores, targets):
    """The whole batch was added up. Each row is an answer of its own."""
    return found(scores, targets)[0].sum()


@exercise.mistake
def over_places(scores, targets):
    """The softmax runs over the places. The tokens of the vocabulary share a probability, and they
    are on the last axis."""
    counts = targets != -100
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    looked_up = scores.log_softmax(1).gather(-1, chosen).squeeze(-1)
    return looked_up.masked_fill(~counts, 0.0).sum(-1)


@exercise.alternative
def by_cross_entropy(scores, targets):
    losses = F.cross_entropy(scores.mT, targets, ignore_index=-100, reduction="none")
    return -losses.sum(-1)


@exercise.alternative
def row_by_row(scores, targets):
    rows = []
    for row, wanted in zip(scores, targets, strict=True):
        places = torch.nonzero(wanted != -100).squeeze(-1)
        chosen = row[places]
        log_p = chosen - chosen.logsumexp(-1, keepdim=True)
        rows.append(log_p[torch.arange(len(places)), wanted[places]].sum())
    return torch.stack(rows)
