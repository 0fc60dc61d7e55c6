"""The loss of a language model: how surprised it was by what really came."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import CROSS_ENTROPY
from course_lib.language_model import cross_entropy

exercise = Exercise(
    reference=cross_entropy,
    lesson="10",
    title="How surprised is the model?",
    minutes=8,
    difficulty=2,
    hints=(
        "Write -log of a softmax's entry as a sum of two terms. Which of them needs all logits, "
        "and which one only the target's?",
        "exp(1000) is infinite, and log of a probability that has become 0 is too. Which function "
        "of torch gives the logarithm of a sum of exponentials without either?",
        "A target that is ignored may be -100, which is the place of no token. What may take "
        "its place while you look up, if its loss is dropped afterwards?",
    ),
    clauses={
        "all targets are ignored the loss is 0": GIVEN,
        "is what equal probabilities reach": "equal logits cost log(vocab)",
    },
    forbidden=CROSS_ENTROPY,
    # any token may replace one that is ignored
    equivalent=("0 -> 1",),
)


@exercise.cases
def cases(draw: Draw):
    yield "one target of two tokens", (draw.normal(2), draw.integers(0, 2))
    yield "three targets", (draw.normal(3, 5), draw.integers(0, 5, 3))
    yield "as many targets as tokens", (draw.normal(4, 4), draw.integers(0, 4, 4))
    yield "a batch of sentences", (draw.normal(2, 3, 7), draw.integers(0, 7, 2, 3))
    yield "three batch dimensions", (draw.normal(2, 3, 4, 5), draw.integers(0, 5, 2, 3, 4))
    padded = draw.integers(1, 6, 3, 4)
    padded[0, 2:], padded[2, 1:] = 0, 0
    yield "padding is ignored", (draw.normal(3, 4, 6), padded, 0)
    beyond = draw.integers(0, 5, 6)
    beyond[[1, 4]] = -100
    yield "an ignored number below zero", (draw.normal(6, 5), beyond, -100)
    beyond = draw.integers(0, 5, 2, 3)
    beyond[:, 1] = 99
    yield "an ignored number beyond the vocabulary", (draw.normal(2, 3, 5), beyond, 99)
    yield "nothing to ignore", (draw.normal(3, 5), draw.integers(0, 4, 3), 4)


@exercise.requires("adding a number to all logits of a token changes nothing")
def shifted(answer, draw: Draw):
    logits, targets = draw.normal(4, 6), draw.integers(0, 6, 4)
    far = logits + torch.tensor([[512.0], [-512.0], [64.0], [0.0]])
    found = answer(logits, targets)
    return found > 0 and torch.allclose(answer(far, targets), found, atol=1e-3)


@exercise.requires("equal logits cost log(vocab), whatever the target is")
def uniform(answer, draw: Draw):
    logits = draw.normal(5, 1).expand(5, 7)
    return torch.allclose(answer(logits, draw.integers(0, 7, 5)), torch.tensor(7.0).log())


@exercise.requires("a row without a target that counts changes nothing, and gets no gradient")
def ignored_rows(answer, draw: Draw):
    logits, targets = draw.normal(3, 4, 6), draw.integers(1, 6, 3, 4)
    targets[1] = 0
    kept = [0, 2]
    found = answer(logits, targets, 0)
    return found > 0 and torch.allclose(found, answer(logits[kept], targets[kept]), atol=1e-6)


def losses(logits, targets, ignore=None):
    counts = torch.ones_like(targets, dtype=torch.bool) if ignore is None else targets != ignore
    chosen = targets.masked_fill(~counts, 0)
    surprise = torch.logsumexp(logits, -1) - logits.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
    return surprise.masked_fill(~counts, 0.0), counts


def mean(surprise, counts):
    return surprise.sum() / counts.sum()


@exercise.mistake
def sign_missing(logits, targets, ignore=None):
    """The sign is missing: the logarithm of a probability is negative, a loss is not."""
    return -cross_entropy(logits, targets, ignore)


@exercise.mistake
def added_up(logits, targets, ignore=None):
    """The losses were added up, so longer texts cost more. Which number should be the same for one
    token and for a thousand?"""
    return losses(logits, targets, ignore)[0].sum()


@exercise.mistake
def not_averaged(logits, targets, ignore=None):
    """The losses were not averaged: one number is asked for."""
    return losses(logits, targets, ignore)[0]


@exercise.mistake
def ignored_counted(logits, targets, ignore=None):
    """The ignored targets were counted below the line: their loss is 0, and so padding makes every
    model look better."""
    surprise, counts = losses(logits, targets, ignore)
    return surprise.sum() / counts.numel()


@exercise.mistake
def mean_of_means(logits, targets, ignore=None):
    """The mean of each row was taken first, and then the mean of these. Rows with fewer targets
    then weigh more a target: over what is the average to be taken at once?"""
    surprise, counts = losses(logits, targets, ignore)
    if not surprise.dim():
        return mean(surprise, counts)
    rows = surprise.sum(-1) / counts.sum(-1).clamp(min=1)
    return rows.sum() / counts.any(-1).sum().clamp(min=1)


@exercise.mistake
def log_of_softmax(logits, targets, ignore=None):
    """Large logits give infinity or NaN: the softmax came first, and log of a probability that has
    become 0 is minus infinity. How can the logarithm be taken without the exponential?"""
    _, counts = losses(logits, targets, ignore)
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    found = -torch.softmax(logits, -1).gather(-1, chosen).squeeze(-1).log()
    return mean(found.masked_fill(~counts, 0.0), counts)


@exercise.mistake
def overflowing(logits, targets, ignore=None):
    """Large logits give infinity: the exponentials overflow before their logarithm is taken. What
    may be subtracted from all logits of a row?"""
    _, counts = losses(logits, targets, ignore)
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    found = logits.exp().sum(-1).log() - logits.gather(-1, chosen).squeeze(-1)
    return mean(found.masked_fill(~counts, 0.0), counts)


@exercise.mistake
def in_bits(logits, targets, ignore=None):
    """The loss is in bits: the natural logarithm, in nats, is asked for."""
    return cross_entropy(logits, targets, ignore) / torch.tensor(2.0).log()


@exercise.mistake
def share_missed(logits, targets, ignore=None):
    """This is one minus the probability of the target. Being sure and wrong should cost far more
    than being unsure: which function of the probability grows without an end?"""
    surprise, counts = losses(logits, targets, ignore)
    return mean(1 - torch.exp(-surprise), counts)


@exercise.mistake
def log_of_a_quotient(logits, targets, ignore=None):
    """Large logits give infinity or NaN: the exponentials overflow, or their quotient becomes 0,
    before the logarithm is taken. How can the logarithm be taken without the exponential?"""
    _, counts = losses(logits, targets, ignore)
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    shares = logits.exp() / logits.exp().sum(-1, keepdim=True)
    found = -shares.gather(-1, chosen).squeeze(-1).log()
    return mean(found.masked_fill(~counts, 0.0), counts)


@exercise.mistake
def not_normalised(logits, targets, ignore=None):
    """The target's logit was taken alone, and nothing was subtracted for the other tokens. A model
    could make all logits large, and never lose: what makes them compete?"""
    _, counts = losses(logits, targets, ignore)
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    found = -logits.gather(-1, chosen).squeeze(-1)
    return mean(found.masked_fill(~counts, 0.0), counts)


@exercise.mistake
def over_the_vocabulary(logits, targets, ignore=None):
    """All tokens' log-probabilities were averaged. With a one-hot target only one term of the sum
    over the vocabulary is left: which one?"""
    _, counts = losses(logits, targets, ignore)
    found = torch.logsumexp(logits, -1) - logits.mean(-1)
    return mean(found.masked_fill(~counts, 0.0), counts)


@exercise.mistake(raises=(IndexError, RuntimeError))
def ignore_ignored(logits, targets, ignore=None):
    """`ignore` changes nothing: padding is learned like any other token."""
    return cross_entropy(logits, targets)


@exercise.mistake(raises=(IndexError, RuntimeError))
def minus_100(logits, targets, ignore=None):
    """Targets of -100 were left out, as torch's own loss does without being asked. Which argument
    says what is to be ignored here?"""
    return cross_entropy(logits, targets, -100)


@exercise.mistake
def zero_is_false(logits, targets, ignore=None):
    """`if ignore` is False for the token 0, which is as good as any. How do you ask whether
    something was given?"""
    return cross_entropy(logits, targets, ignore if ignore else None)


@exercise.mistake(raises=(IndexError, RuntimeError))
def looked_up_too_early(logits, targets, ignore=None):
    """What is ignored was looked up before it was dropped, and it may be the place of no token.
    What could take its place?"""
    _, counts = losses(logits, targets, ignore)
    found = torch.logsumexp(logits, -1) - logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return mean(found.masked_fill(~counts, 0.0), counts)


@exercise.alternative
def rows_that_count(logits, targets, ignore=None):
    rows, places = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    kept = torch.arange(len(places))
    if ignore is not None:
        kept = kept[places != ignore]
    return -rows.log_softmax(-1)[kept, places[kept]].mean()


@exercise.alternative
def one_hot(logits, targets, ignore=None):
    tokens = torch.arange(logits.shape[-1])
    counts = (targets == targets) if ignore is None else targets.ne(ignore)
    hot = (targets.unsqueeze(-1) == tokens) & counts.unsqueeze(-1)
    peak = logits.amax(-1, keepdim=True).detach()
    log_sum = (logits - peak).exp().sum(-1, keepdim=True).log() + peak
    total = ((log_sum - logits) * hot).sum()
    return total / counts.sum()
