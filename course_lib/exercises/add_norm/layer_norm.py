"""Every token is brought to the same mean and the same size, by its own entries alone."""

import torch

from course_lib.add_norm import layer_norm
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import NORMS

exercise = Exercise(
    reference=layer_norm,
    lesson="07",
    title="Tokens of one size",
    minutes=10,
    difficulty=1,
    hints=(
        "Two tokens of a sentence are not to know of each other here. Over which axis may the mean "
        "run, then, and what does that axis hold?",
        "The mean of each token is one number, and it must meet all d entries of that token. Which "
        "shape must it have for 3 tokens of 4 entries?",
        "A token whose entries are all equal has the variance 0. What is under the root then, "
        "and what would be there if eps came after it?",
    ),
    clauses={
        "the token's own d entries": "over_the_words",
        "each sum divided by d": "divided_by_one_less",
        "entries may lie far from zero": "tokens far from zero",
    },
    forbidden=NORMS,
)


def words(draw: Draw, *shape: int):
    d = shape[-1]
    return 2 + 3 * draw.normal(*shape), draw.normal(d), draw.normal(d)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", words(draw, 2, 3)
    yield "three tokens", words(draw, 3, 5)
    yield "as many tokens as entries", words(draw, 4, 4)
    yield "small tokens", (0.01 * draw.normal(2, 4), draw.normal(4), draw.normal(4))
    yield "another eps", (*words(draw, 2, 5), 0.5)
    yield "a token of equal entries", (torch.full((1, 4), 2.0), draw.normal(4), draw.normal(4))
    yield "a token that is no sentence", words(draw, 6)
    yield "a batch of sentences", words(draw, 2, 3, 5)
    yield "two batch dimensions", words(draw, 3, 2, 4, 6)


@exercise.edges
def edges(draw: Draw):
    yield "an eps of 0", (0.1 * draw.normal(2, 6), *words(draw, 6)[1:], 0.0)
    yield "tokens of one entry", words(draw, 3, 1)


@exercise.requires("with gain 1 and bias 0, each token has the mean 0 and the variance 1")
def standard(answer, draw: Draw):
    x, gain, bias = 2 + 3 * draw.normal(2, 4, 6), torch.ones(6), torch.zeros(6)
    found = answer(x, gain, bias)
    return torch.allclose(found.mean(-1), torch.zeros(2, 4), atol=1e-5) and torch.allclose(
        found.var(-1, correction=0), torch.ones(2, 4), atol=1e-3
    )


@exercise.requires("a token may grow, and its entries move together: nothing changes for anybody")
def moved(answer, draw: Draw):
    x, gain, bias = words(draw, 3, 5)
    plain = answer(x, gain, bias)
    other = torch.tensor([[1.0], [20.0], [3.0]]) * x + torch.tensor([[7.0], [0.0], [-5.0]])
    again = answer(other, gain, bias)
    return (plain - bias).abs().max() > 0 and torch.allclose(again, plain, atol=1e-3)


@exercise.requires("a token of equal entries comes out as the bias, and no other token does")
def equal_entries(answer, draw: Draw):
    x, gain, bias = words(draw, 3, 5)
    x[:2] = torch.tensor([[3.0], [-8.0]])
    moved = (answer(x, gain, bias) - bias).abs().amax(-1) > 1e-2
    return moved.tolist() == [False, False, True]


@exercise.requires("tokens far from zero are normalised as they are near it")
def far_from_zero(answer, draw: Draw):
    # multiples of 1/16, which a float32 holds that far away as well
    x, (_, gain, bias) = draw.integers(-48, 49, 4, 6) / 16, words(draw, 4, 6)
    near, far = answer(x, gain, bias), answer(x + 8192, gain, bias)
    # a float64 holds them farther away
    doubles = (x.double() + 2**30, gain.double(), bias.double())
    return (near - bias).abs().max() > 0.1 and all(
        torch.allclose(found, near.to(found), atol=2e-2) for found in (far, answer(*doubles))
    )


def normed(x, gain, bias, eps, over=-1, correction=0):
    centred = x - x.mean(over, keepdim=True)
    variance = x.var(over, correction=correction, keepdim=True)
    return gain * centred / torch.sqrt(variance + eps) + bias


@exercise.mistake
def divided_by_one_less(x, gain, bias, eps=1e-5):
    """The variance was divided by d - 1, as `var` and `std` do unless they are told otherwise. That
    corrects for a mean that was guessed from a sample; what does the docstring divide by?"""
    return normed(x, gain, bias, eps, correction=1)


@exercise.mistake
def standard_deviation_by_default(x, gain, bias, eps=1e-5):
    """Two things differ: the variance was divided by d - 1, as `std` does unless it is told
    otherwise, and eps was added to the root, not under it."""
    return gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + bias


@exercise.mistake
def eps_beside_the_root(x, gain, bias, eps=1e-5):
    """eps was added to the root and not under it. Which of the two changes a small token more, and
    which of them does the formula have?"""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / (torch.sqrt((centred**2).mean(-1, keepdim=True)) + eps) + bias


@exercise.mistake
def no_root(x, gain, bias, eps=1e-5):
    """The root is missing: each token was divided by its variance. Make a token ten times larger:
    by how much does its variance grow, and what should become of the result?"""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / ((centred**2).mean(-1, keepdim=True) + eps) + bias


@exercise.mistake
def no_eps(x, gain, bias, eps=1e-5):
    """eps plays no part: a token of equal entries gives 0 / 0, which is NaN. What keeps the
    formula's divisor away from 0?"""
    return normed(x, gain, bias, 0.0)


@exercise.mistake
def mean_left_in(x, gain, bias, eps=1e-5):
    """The mean is still in the result: it was taken out for the variance and left in what was
    divided. Which x does the formula divide?"""
    return gain * x / torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps) + bias


@exercise.mistake
def no_mean(x, gain, bias, eps=1e-5):
    """The mean was never subtracted, so the squares are those of x itself. That is RMS norm, with a
    bias. What is a variance measured from?"""
    return gain * x / torch.sqrt((x**2).mean(-1, keepdim=True) + eps) + bias


@exercise.mistake
def only_centred(x, gain, bias, eps=1e-5):
    """The mean was subtracted, and large tokens are still large: nothing was divided by the
    standard deviation."""
    return gain * (x - x.mean(-1, keepdim=True)) + bias


@exercise.mistake
def sum_as_mean(x, gain, bias, eps=1e-5):
    """What was subtracted from each token is the sum of its entries, not their mean: a token of
    ones lost d from each of them. What turns a sum into a mean?"""
    centred = x - x.sum(-1, keepdim=True)
    return gain * centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps) + bias


@exercise.mistake
def length_one(x, gain, bias, eps=1e-5):
    """The squares were summed and not averaged: each token has the length 1, and its entries shrink
    as d grows. By what is the sum of a variance divided?"""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / torch.sqrt((centred**2).sum(-1, keepdim=True) + eps) + bias


@exercise.mistake
def mean_distance(x, gain, bias, eps=1e-5):
    """Each token was divided by the mean of the entries' distances from the mean. Between that and
    the standard deviation stand a square and a root: which comes first, and where is the mean
    taken?"""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / (centred.abs().mean(-1, keepdim=True) + eps) + bias


@exercise.mistake(raises=IndexError)
def over_the_words(x, gain, bias, eps=1e-5):
    """Mean and variance ran over the tokens, so every token moves every other one. Whose entries
    should share a mean, and which axis are they on?"""
    return normed(x, gain, bias, eps, over=-2)


@exercise.mistake
def over_the_first_axis(x, gain, bias, eps=1e-5):
    """Mean and variance ran over the first axis: with a token that is no sentence these are its
    entries, otherwise they are tokens or sentences. Which axis holds the entries always?"""
    return normed(x, gain, bias, eps, over=0)


@exercise.mistake(raises=IndexError)
def over_axis_one(x, gain, bias, eps=1e-5):
    """Mean and variance ran over axis 1, counted from the front. In a batch that is the tokens, and
    a token alone has no such axis. Which number names the last axis, however many there are?"""
    return normed(x, gain, bias, eps, over=1)


@exercise.mistake
def over_everything(x, gain, bias, eps=1e-5):
    """One mean and one variance serve the whole tensor, so every token moves every other one. How
    many means do three tokens have?"""
    return gain * (x - x.mean()) / torch.sqrt(x.var(correction=0) + eps) + bias


@exercise.mistake
def over_each_sentence(x, gain, bias, eps=1e-5):
    """One mean and one variance serve a whole sentence. Its tokens should not move each other: over
    which axis alone do they run?"""
    axes = tuple(range(max(0, x.dim() - 2), x.dim()))
    return normed(x, gain, bias, eps, over=axes)


@exercise.mistake(raises=RuntimeError)
def axis_lost(x, gain, bias, eps=1e-5):
    """The means have lost their axis, so they meet the columns instead of the tokens. What does
    `keepdim` keep?"""
    centred = x - x.mean(-1)
    return gain * centred / torch.sqrt((centred**2).mean(-1) + eps) + bias


@exercise.mistake(raises=RuntimeError)
def axis_of_the_variance_lost(x, gain, bias, eps=1e-5):
    """The means fit their tokens, but the variances have lost their axis and meet the columns
    instead. What does `keepdim` keep?"""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / torch.sqrt((centred**2).mean(-1) + eps) + bias


@exercise.mistake
def gain_and_bias_swapped(x, gain, bias, eps=1e-5):
    """Gain and bias have changed places. Which of the two is multiplied, and which is added?"""
    return normed(x, bias, gain, eps)


@exercise.mistake
def gain_forgotten(x, gain, bias, eps=1e-5):
    """The gain plays no part: every column keeps the size 1. How could the model make one column
    count for more than another?"""
    return normed(x, torch.ones_like(gain), bias, eps)


@exercise.mistake
def bias_forgotten(x, gain, bias, eps=1e-5):
    """The bias plays no part. What should a token of equal entries come out as?"""
    return normed(x, gain, torch.zeros_like(bias), eps)


@exercise.mistake
def gain_and_bias_forgotten(x, gain, bias, eps=1e-5):
    """Each token has the mean 0 and the variance 1, and stays so: gain and bias play no part. What
    do they do to each column?"""
    return normed(x, torch.ones_like(gain), torch.zeros_like(bias), eps)


@exercise.mistake
def bias_stretched(x, gain, bias, eps=1e-5):
    """The bias was stretched by the gain too: it was added before the multiplication. Which of the
    two comes last in the formula?"""
    return gain * (normed(x, torch.ones_like(gain), torch.zeros_like(bias), eps) + bias)


@exercise.mistake
def statistics_detached(x, gain, bias, eps=1e-5):
    """The right results, but the wrong gradients: mean and variance were cut off by `no_grad`,
    `.detach()` or `.data`. When one entry of a token moves, do the other results stand still?"""
    centred = x - x.mean(-1, keepdim=True).detach()
    variance = (centred**2).mean(-1, keepdim=True).detach()
    return gain * centred / torch.sqrt(variance + eps) + bias


@exercise.mistake
def half_the_variance(x, gain, bias, eps=1e-5):
    """The numbers were divided by half their variance: a power binds before a division, so `v ** 1
    / 2` is (v ** 1) / 2. How else can you write the exponent of a root?"""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / ((x.var(-1, keepdim=True, unbiased=False) + eps) / 2) + bias


@exercise.mistake
def variance_and_half(x, gain, bias, eps=1e-5):
    """Divided by the variance and then by 2: a power binds before a division, so `y / v ** 1 / 2`
    is (y / v) / 2. How else can you write the exponent of a root?"""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / (x.var(-1, keepdim=True, unbiased=False) + eps) / 2 + bias


stock.ignored(
    exercise,
    "eps",
    "eps is always 1e-5, whatever the caller says. It has a name in the signature; where does the "
    "formula use it?",
)


@exercise.mistake
def squares_not_centred(x, gain, bias, eps=1e-5):
    """The squares of x itself were averaged: the variance is the mean of the squares after the mean
    was subtracted. For which x are the two equal?"""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / torch.sqrt((x**2).mean(-1, keepdim=True) + eps) + bias


@exercise.alternative
def with_torch_statistics(x, gain, bias, eps=1e-5):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps) * gain + bias


@exercise.mistake
def mean_of_squares_less_square_of_mean(x, gain, bias, eps=1e-5):
    """The variance is the mean of the squares less the square of the mean. Far from zero these are
    two large numbers that differ in their last digits, which a float does not hold. What is small
    if you take the mean off first?"""
    mean = x.sum(dim=-1, keepdim=True) / x.shape[-1]
    variance = (x * x).sum(dim=-1, keepdim=True) / x.shape[-1] - mean**2
    return gain * ((x - mean) / (variance + eps) ** 0.5) + bias
