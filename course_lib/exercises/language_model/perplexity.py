"""Perplexity: among how many equally likely tokens a model is undecided."""

import torch

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.language_model import perplexity

exercise = Exercise(
    reference=perplexity,
    lesson="10_byte_pairs",
    title="Undecided among how many?",
    minutes=3,
    difficulty=1,
    hints=(
        "A model that gives each of 8 tokens the same probability loses log 8 at every token. "
        "What brings you back to 8?",
        "Two sentences have 1 and 9 real tokens. Which of them should have the larger share in "
        "the average?",
    ),
    clauses={
        "are in nats": "powers_of_two",
        "over all tokens of the batch together": "mean_of_means",
        "where `mask` is True": "mask_ignored",
        "without any, the perplexity is 1": GIVEN,
    },
    small_only="the perplexity of a loss of 1,000 nats is no number that a float can hold",
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.normal(2).abs(),)
    yield "one token", (draw.normal(1).abs(),)
    yield "a batch", (draw.normal(3, 4).abs(),)
    yield "a loss alone", (draw.normal().abs(),)
    yield "a long text", (2 + 4 * draw.normal(9, 500).abs(),)
    yield (
        "unequal lengths",
        (
            draw.normal(3, 4).abs(),
            torch.arange(4) < torch.tensor([4, 1, 2]).unsqueeze(-1),
        ),
    )
    yield "real tokens anywhere", (draw.normal(2, 3, 5).abs(), draw.mask(2, 3, 5))
    nowhere = torch.tensor([[False, False], [True, False]])
    yield "a sentence without tokens", (draw.normal(2, 2).abs(), nowhere)


@exercise.edges
def edges(draw: Draw):
    # means that a float holds exactly: the exponential enlarges what is rounded
    yield "losses of over 20 nats", (draw.integers(21, 25, 4).float(),)


@exercise.requires("a guess among n equally likely tokens has the perplexity n")
def equally_likely(answer, draw: Draw):
    n = draw.number(2, 1000)
    losses = torch.full((2, 5), float(n)).log()
    return torch.allclose(answer(losses), torch.tensor(float(n)), rtol=1e-4)


@exercise.requires(
    "the losses of padding do not matter, not even infinity, and those of real tokens do"
)
def padding(answer, draw: Draw):
    losses, mask = draw.normal(3, 5).abs(), draw.mask(3, 5)
    found = answer(losses, mask)
    filled = [answer(losses.masked_fill(~mask, x), mask) for x in (0.0, 50.0, torch.inf)]
    # that of a real token is another matter
    real = answer(losses.masked_fill(mask, torch.inf), mask)
    return found > 1 and real == torch.inf and all(torch.allclose(x, found) for x in filled)


def parts(losses, mask):
    real = torch.ones_like(losses, dtype=torch.bool) if mask is None else mask
    return losses.masked_fill(~real, 0.0), real


@exercise.mistake
def mean_loss(losses, mask=None):
    """This is the mean loss itself. What undoes a logarithm?"""
    losses, real = parts(losses, mask)
    return losses.sum() / real.sum()


@exercise.mistake
def mean_of_perplexities(losses, mask=None):
    """The perplexities of all tokens were averaged. One surprise of 20 nats would outweigh
    everything: what is averaged first?"""
    values, real = parts(losses, mask)
    return values.exp().masked_fill(~real, 0.0).sum() / real.sum()


@exercise.mistake
def exp_of_the_sum(losses, mask=None):
    """The losses were added up and not averaged: the number grows with the text."""
    return parts(losses, mask)[0].sum().exp()


@exercise.mistake
def root_of_the_product(losses, mask=None):
    """A long text gives infinity: the exponentials of all tokens were multiplied before the root
    was taken, and their product overflows. What is averaged first, so that one `exp` is enough?"""
    values, real = parts(losses, mask)
    return values.exp().prod() ** (1 / real.sum())


@exercise.mistake
def mean_of_sentences_perplexities(losses, mask=None):
    """The perplexity of each sentence was taken first, and these were averaged. Over what is the
    mean to be taken, and of what: losses, or their exponentials?"""
    values, real = parts(losses, mask)
    rows = (values.sum(-1) / real.sum(-1).clamp(min=1)).exp()
    return (rows * real.any(-1)).sum() / real.any(-1).sum()


@exercise.mistake
def mean_of_all_means(losses, mask=None):
    """The mean losses of the sentences were averaged, one without tokens counted as 0. Over what is
    the mean to be taken at once, so that every token weighs the same?"""
    values, real = parts(losses, mask)
    return (values.sum(-1) / real.sum(-1).clamp(min=1)).mean().exp()


@exercise.mistake
def powers_of_two(losses, mask=None):
    """2 was raised to the loss, which is right for bits. The losses are in nats: what is the base
    of a natural logarithm?"""
    return 2.0 ** mean_loss(losses, mask)


@exercise.mistake
def padding_counted(losses, mask=None):
    """Padding was counted below the line, so a padded batch looks easier than it is."""
    losses, _ = parts(losses, mask)
    return (losses.sum() / losses.numel()).exp()


@exercise.mistake
def mean_of_means(losses, mask=None):
    """The mean of each sentence was taken first, so a sentence of one token weighs as much as one
    of a hundred. Over what is the mean to be taken at once?"""
    losses, real = parts(losses, mask)
    rows = losses.sum(-1) / real.sum(-1).clamp(min=1)
    return (rows.sum() / real.any(-1).sum().clamp(min=1)).exp()


@exercise.mistake
def mean_of_means_of_nothing(losses, mask=None):
    """The mean of each sentence was taken first, and that of a sentence without tokens is 0 / 0.
    Over what is the mean to be taken at once, so that every token weighs the same?"""
    losses, real = parts(losses, mask)
    return (losses.sum(-1) / real.sum(-1)).mean().exp()


@exercise.mistake
def by_sentence(losses, mask=None):
    """Each sentence got a perplexity of its own: the whole batch has one."""
    losses, real = parts(losses, mask)
    return (losses.sum(-1) / real.sum(-1).clamp(min=1)).exp()


stock.ignored(exercise)
stock.mask_inverted(
    exercise, sentence="The mask is read the wrong way round: True means that a token is real."
)


@exercise.mistake
def times_the_mask(losses, mask=None):
    """Padding was multiplied by 0, and infinity times 0 is NaN. How can a loss be dropped whatever
    it is?"""
    if mask is None:
        return perplexity(losses)
    return ((losses * mask).sum() / mask.sum()).exp()


@exercise.alternative
def chosen_and_averaged(losses, mask=None):
    if mask is None:
        return losses.mean().exp()
    return (torch.where(mask, losses, 0).sum() / mask.sum()).exp()


@exercise.alternative
def geometric_mean(losses, mask=None):
    real = torch.full_like(losses, True, dtype=torch.bool) if mask is None else mask
    share = real / real.sum().double()
    # thousands of factors: in float32 their product is off in its fifth digit
    product = torch.prod(torch.exp(torch.where(real, losses, 0.0) * share))
    return product.to(losses.dtype)
