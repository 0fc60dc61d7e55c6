"""A loss that does not ask for certainty: a share of it goes to the whole vocabulary."""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.translation import smoothed_cross_entropy

exercise = Exercise(
    reference=smoothed_cross_entropy,
    lesson="11_recipe",
    title="A loss that does not ask for certainty",
    minutes=10,
    difficulty=2,
    hints=(
        "From the logits of one place, which function of torch makes the logarithms of all "
        "probabilities at once, however large the logits are?",
        "You have a loss for every token of the vocabulary, (..., vocab). How do you pick one of "
        "them at each place, and what is the mean of all of them?",
        "A target that is ignored may be -100, which is no token. What could be put in its place "
        "while you look up its loss, and what becomes of that loss afterwards?",
    ),
    clauses={
        "do not count": "divided_by_all",
        "the loss and its gradient are 0": GIVEN,
    },
    forbidden=(
        "torch.nn.functional.cross_entropy",
        "torch.nn.CrossEntropyLoss",
    ),
    equivalent=(
        # any token will do where the loss is thrown away
        "0 -> 1",
    ),
)


@exercise.cases
def cases(draw: Draw):
    share = draw.number(1, 99) / 100
    yield "two places, no smoothing", (draw.normal(2, 3), torch.tensor([0, 2]), 0.0)
    yield "two places, a tenth", (draw.normal(2, 4), draw.integers(0, 4, 2), 0.1)
    yield "a batch of sentences", (draw.normal(3, 4, 5), draw.integers(0, 5, 3, 4), share)
    yield "all of it smoothed", (draw.normal(3, 6), draw.integers(0, 6, 3), 1.0)
    padded = torch.tensor([[3, 1, 0], [2, 0, 0]])
    yield "padding ignored", (draw.normal(2, 3, 5), padded, share, 0)
    outside = torch.tensor([2, -100, 1, -100])
    yield "ignored targets that are no token", (draw.normal(4, 3), outside, share, -100)
    yield "no target is ignored", (draw.normal(4, 4), draw.integers(0, 4, 4), share, 9)
    yield "one place, without a batch", (draw.normal(5), torch.tensor(3), share)
    yield "two batch dimensions", (draw.normal(2, 3, 4, 5), draw.integers(0, 5, 2, 3, 4), 0.2, 1)
    token_0 = torch.tensor([0, 1, 2, 0])
    yield "token 1 is ignored, token 0 is not", (draw.normal(4, 5), token_0, share, 1)


@exercise.requires("without smoothing, this is the cross-entropy of the targets")
def none_is_cross_entropy(answer, draw: Draw):
    logits, targets = 3 * draw.normal(6, 5), draw.integers(0, 5, 6)
    return torch.allclose(answer(logits, targets, 0.0), F.cross_entropy(logits, targets), atol=1e-5)


@exercise.requires("the loss is a straight line in the smoothing")
def a_line(answer, draw: Draw):
    logits, targets = 3 * draw.normal(6, 5), draw.integers(0, 5, 6)
    none, half, all_of_it = (answer(logits, targets, share) for share in (0.0, 0.5, 1.0))
    level = torch.allclose(2 * half, none + all_of_it, atol=1e-5)
    return level and not torch.allclose(none, all_of_it, atol=1e-3)


@exercise.requires("what stands in the places of ignored targets does not matter")
def ignored_is_nothing(answer, draw: Draw):
    logits, others = draw.normal(5, 4), draw.normal(5, 4)
    targets = torch.tensor([1, 0, 3, 0, 2])
    mixed = torch.where((targets == 0).unsqueeze(-1), others, logits)
    plain, changed = answer(logits, targets, 0.3, 0), answer(mixed, targets, 0.3, 0)
    kept = answer(logits[targets != 0], targets[targets != 0], 0.3)
    return torch.allclose(plain, changed, atol=1e-6) and torch.allclose(plain, kept, atol=1e-5)


@exercise.requires(
    "the loss is least where each token has s / V of the probability, and the target 1 - s more"
)
def best_is_not_certain(answer, draw: Draw):
    share, vocab, target = 0.2, 5, draw.integers(0, 5, 1)
    best = (1 - share) * F.one_hot(target, vocab) + share / vocab
    least = answer(best.log(), target, share)
    steps = [answer(best.log() + draw.normal(1, vocab), target, share) for _ in range(5)]
    return all(least < other for other in steps)


def parts(logits, targets, ignore=None):
    """Return which targets count, the loss of each, and all losses of each place."""
    counted = torch.ones_like(targets, dtype=torch.bool) if ignore is None else targets != ignore
    losses = -torch.log_softmax(logits, dim=-1)
    chosen = targets.masked_fill(~counted, 0).unsqueeze(-1)
    return counted, losses.gather(-1, chosen).squeeze(-1), losses


def mean(losses, counted):
    return losses.masked_fill(~counted, 0.0).sum() / counted.sum()


@exercise.mistake
def spread_over_the_others(logits, targets, smoothing, ignore=None):
    """The share went to the wrong tokens: the target had none of it. Another convention, and a
    usual one, but here the mean is over the whole vocabulary, the target included."""
    counted, of_target, losses = parts(logits, targets, ignore)
    others = (losses.sum(-1) - of_target) / (losses.shape[-1] - 1)
    return mean((1 - smoothing) * of_target + smoothing * others, counted)


@exercise.mistake
def sum_over_the_vocabulary(logits, targets, smoothing, ignore=None):
    """The losses of the whole vocabulary were added up, not averaged. By which factor is that too
    large?"""
    counted, of_target, losses = parts(logits, targets, ignore)
    return mean((1 - smoothing) * of_target + smoothing * losses.sum(-1), counted)


@exercise.mistake
def on_top(logits, targets, smoothing, ignore=None):
    """The target's loss kept its whole weight, and the rest came on top. What is left for the
    target when a share s goes elsewhere?"""
    counted, of_target, losses = parts(logits, targets, ignore)
    return mean(of_target + smoothing * losses.mean(-1), counted)


@exercise.mistake
def shares_exchanged(logits, targets, smoothing, ignore=None):
    """The two shares have changed places: with s = 0.1, a tenth was left for the target. Which of
    the two gets 1 - s?"""
    counted, of_target, losses = parts(logits, targets, ignore)
    return mean(smoothing * of_target + (1 - smoothing) * losses.mean(-1), counted)


@exercise.mistake
def not_smoothed(logits, targets, smoothing, ignore=None):
    """Nothing is smoothed: `smoothing` changes nothing."""
    counted, of_target, _ = parts(logits, targets, ignore)
    return mean(of_target, counted)


@exercise.mistake
def share_lost(logits, targets, smoothing, ignore=None):
    """The target lost a share of its weight, and nobody got it. Where is the mean over the
    vocabulary?"""
    counted, of_target, _ = parts(logits, targets, ignore)
    return mean((1 - smoothing) * of_target, counted)


@exercise.mistake
def divided_by_all(logits, targets, smoothing, ignore=None):
    """Ignored targets have no loss, but were counted when the sum was divided. How many targets
    count?"""
    counted, of_target, losses = parts(logits, targets, ignore)
    mixed = (1 - smoothing) * of_target + smoothing * losses.mean(-1)
    return mixed.masked_fill(~counted, 0.0).mean()


@exercise.mistake
def padding_smoothed(logits, targets, smoothing, ignore=None):
    """Only the target's part leaves out what is to be ignored: the mean over the vocabulary still
    hears the padding."""
    counted, of_target, losses = parts(logits, targets, ignore)
    return (1 - smoothing) * mean(of_target, counted) + smoothing * losses.mean()


@exercise.mistake
def sum_alone(logits, targets, smoothing, ignore=None):
    """The losses of all targets were added up. Which number makes a mean of them, whatever the size
    of the batch?"""
    counted, of_target, losses = parts(logits, targets, ignore)
    mixed = (1 - smoothing) * of_target + smoothing * losses.mean(-1)
    return mixed.masked_fill(~counted, 0.0).sum()


@exercise.mistake
def not_averaged(logits, targets, smoothing, ignore=None):
    """There is one loss for each place, where one number is asked for: their mean over the targets
    that count."""
    counted, of_target, losses = parts(logits, targets, ignore)
    mixed = (1 - smoothing) * of_target + smoothing * losses.mean(-1)
    return mixed.masked_fill(~counted, 0.0)


@exercise.mistake
def wrong_sign(logits, targets, smoothing, ignore=None):
    """The sign is wrong: a logarithm of a probability is negative, a loss is not."""
    return -smoothed_cross_entropy(logits, targets, smoothing, ignore)


@exercise.mistake
def probabilities_smoothed(logits, targets, smoothing, ignore=None):
    """The probabilities were smoothed after the softmax: a share of every probability was taken
    away. Smooth the targets, and leave the model's probabilities as they are."""
    probabilities = torch.softmax(logits, -1)
    smoothed = (1 - smoothing) * probabilities + smoothing / logits.shape[-1]
    counted, of_target, _ = parts(smoothed.log(), targets, ignore)
    return mean(of_target, counted)


@exercise.mistake
def logits_as_they_are(logits, targets, smoothing, ignore=None):
    """The logits were taken as if they were logarithms of probabilities already. Which function
    makes them so?"""
    counted, _, _ = parts(logits, targets, ignore)
    chosen = targets.masked_fill(~counted, 0).unsqueeze(-1)
    of_target = -logits.gather(-1, chosen).squeeze(-1)
    return mean((1 - smoothing) * of_target - smoothing * logits.mean(-1), counted)


@exercise.mistake
def log_of_a_quotient(logits, targets, smoothing, ignore=None):
    """Large logits give infinity or NaN: the exponentials overflow, or a probability becomes 0,
    before the logarithm is taken. Which function makes the logarithms at once?"""
    counted, _, _ = parts(logits, targets, ignore)
    losses = -(logits.exp() / logits.exp().sum(-1, keepdim=True)).log()
    of_target = losses.gather(-1, targets.masked_fill(~counted, 0).unsqueeze(-1)).squeeze(-1)
    return mean((1 - smoothing) * of_target + smoothing * losses.mean(-1), counted)


@exercise.alternative
def against_a_distribution(logits, targets, smoothing, ignore=None):
    vocab = logits.shape[-1]
    counted = targets != ignore if ignore is not None else targets == targets
    wanted = F.one_hot(torch.where(counted, targets, 0), vocab).to(logits.dtype)
    wanted = (1 - smoothing) * wanted + smoothing / vocab
    losses = -(wanted * F.log_softmax(logits, dim=-1)).sum(-1)
    return torch.where(counted, losses, 0.0).sum() / counted.sum()


@exercise.alternative
def what_counts_picked_out(logits, targets, smoothing, ignore=None):
    rows, wanted = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    if ignore is not None:
        rows, wanted = rows[wanted != ignore], wanted[wanted != ignore]
    total = rows.logsumexp(-1)
    of_target = total - rows[torch.arange(len(wanted)), wanted]
    of_all = total - rows.mean(-1)
    return ((1 - smoothing) * of_target + smoothing * of_all).sum() / len(wanted)
