"""Every token is brought to one size, and nothing is subtracted."""

import torch

from course_lib.add_norm import rms_norm
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import NORMS

exercise = Exercise(
    reference=rms_norm,
    lesson="07",
    title="One size, and no mean",
    minutes=6,
    difficulty=1,
    hints=(
        "Read the letters R, M and S of the name from right to left. What is done to the entries "
        "first, what second, what third?",
        "Each token has one size, and it divides all d entries of that token. Which axis is gone "
        "after the mean, and how can it stay with the length 1?",
        "What does the formula give for a token of zeros, with eps under the root, and what "
        "without it?",
    ),
    forbidden=NORMS,
)


def words(draw: Draw, *shape: int):
    return 2 + 3 * draw.normal(*shape), draw.normal(shape[-1])


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", words(draw, 2, 3)
    yield "three tokens", words(draw, 3, 5)
    yield "as many tokens as entries", words(draw, 4, 4)
    yield "small tokens", (0.01 * draw.normal(2, 4), draw.normal(4))
    yield "another eps", (*words(draw, 2, 5), 0.5)
    yield "a token of zeros", (torch.zeros(1, 4), draw.normal(4))
    yield "a token that is no sentence", words(draw, 6)
    yield "a batch of sentences", words(draw, 2, 3, 5)
    yield "two batch dimensions", words(draw, 3, 2, 4, 6)


@exercise.edges
def edges(draw: Draw):
    yield "an eps of 0", (0.1 * draw.normal(2, 6), draw.normal(6), 0.0)


@exercise.requires("with gain 1, the squares of each token's entries have the mean 1")
def one_size(answer, draw: Draw):
    found = answer(2 + 3 * draw.normal(2, 4, 6), torch.ones(6))
    return torch.allclose((found**2).mean(-1), torch.ones(2, 4), atol=1e-3)


@exercise.requires("a token may grow and nothing changes; turned round, its result turns round")
def grown(answer, draw: Draw):
    x, gain = words(draw, 3, 5)
    plain = answer(x, gain)
    factor = torch.tensor([[2.0], [-30.0], [-1.0]])
    again = answer(factor * x, gain)
    return plain.abs().max() > 0 and torch.allclose(again, factor.sign() * plain, atol=1e-3)


@exercise.requires("with gain 1, a token of sevens becomes one of ones, since its mean is left in")
def mean_kept(answer, draw: Draw):
    signs = torch.tensor([[1.0], [-1.0]]).expand(2, 5)
    return torch.allclose(answer(7 * signs, torch.ones(5)), signs, atol=1e-3)


def divided(x, gain, size):
    return gain * x / size


@exercise.mistake
def mean_subtracted(x, gain, eps=1e-5):
    """The mean was subtracted first, which makes it layer norm without its bias. What does the
    formula subtract?"""
    centred = x - x.mean(-1, keepdim=True)
    return divided(centred, gain, torch.sqrt((centred**2).mean(-1, keepdim=True) + eps))


@exercise.mistake
def standard_deviation(x, gain, eps=1e-5):
    """Each token was divided by its standard deviation, which measures from the token's mean. From
    where does the mean of x^2 measure?"""
    return divided(x, gain, torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps))


@exercise.mistake
def standard_deviation_by_default(x, gain, eps=1e-5):
    """Each token was divided by what `std` gives: it measures from the token's mean, and divides by
    d - 1. From where does the mean of x^2 measure?"""
    return divided(x, gain, x.std(-1, keepdim=True) + eps)


@exercise.mistake
def length_one(x, gain, eps=1e-5):
    """The squares were summed and not averaged: each token has the length 1, and its entries shrink
    as d grows. What does the M stand for?"""
    return divided(x, gain, torch.sqrt((x**2).sum(-1, keepdim=True) + eps))


@exercise.mistake
def length_one_and_eps_after(x, gain, eps=1e-5):
    """Each token was divided by its length, the root of the sum of the squares, and eps came after
    the root. Between a sum and a mean stands which number?"""
    return divided(x, gain, x.norm(dim=-1, keepdim=True) + eps)


@exercise.mistake
def eps_beside_the_root(x, gain, eps=1e-5):
    """eps was added to the root and not under it. Which of the two changes a small token more, and
    which of them does the formula have?"""
    return divided(x, gain, torch.sqrt((x**2).mean(-1, keepdim=True)) + eps)


@exercise.mistake
def no_root(x, gain, eps=1e-5):
    """The root is missing: each token was divided by the mean of its squares. Make a token ten
    times larger: what should become of the result, and what does?"""
    return divided(x, gain, (x**2).mean(-1, keepdim=True) + eps)


@exercise.mistake
def no_squares(x, gain, eps=1e-5):
    """The squares are missing: each token was divided by the mean size of its entries. Which letter
    of the name is that?"""
    return divided(x, gain, x.abs().mean(-1, keepdim=True) + eps)


@exercise.mistake
def square_of_the_mean(x, gain, eps=1e-5):
    """The mean was taken before the square, and it is the mean's own size that divides: a token
    whose entries cancel out grows beyond measure. Which of the two comes first?"""
    return divided(x, gain, torch.sqrt(x.mean(-1, keepdim=True) ** 2 + eps))


@exercise.mistake
def no_eps(x, gain, eps=1e-5):
    """eps plays no part: a token of zeros gives 0 / 0, which is NaN. What keeps the formula's
    divisor away from 0?"""
    return divided(x, gain, torch.sqrt((x**2).mean(-1, keepdim=True)))


@exercise.mistake
def multiplied(x, gain, eps=1e-5):
    """The result was multiplied by the root where the formula divides: large tokens grew larger."""
    return gain * x * torch.sqrt((x**2).mean(-1, keepdim=True) + eps)


@exercise.mistake
def gain_forgotten(x, gain, eps=1e-5):
    """The gain plays no part: every column counts alike. Where does the formula stretch the
    columns?"""
    return rms_norm(x, torch.ones_like(gain), eps)


@exercise.mistake
def gain_first(x, gain, eps=1e-5):
    """The gain came before the norm, and helped to decide the size that divides. Which tokens does
    the formula measure: those before the gain, or those after it?"""
    return rms_norm(gain * x, torch.ones_like(gain), eps)


@exercise.mistake(raises=IndexError)
def over_the_words(x, gain, eps=1e-5):
    """The mean ran over the tokens, so every token moves every other one. Whose entries make up the
    size of a token, and which axis are they on?"""
    return divided(x, gain, torch.sqrt((x**2).mean(-2, keepdim=True) + eps))


@exercise.mistake
def over_the_first_axis(x, gain, eps=1e-5):
    """The mean ran over the first axis: with a token that is no sentence these are its entries,
    otherwise they are tokens or sentences. Which axis holds the entries always?"""
    return divided(x, gain, torch.sqrt((x**2).mean(0, keepdim=True) + eps))


@exercise.mistake(raises=IndexError)
def over_axis_one(x, gain, eps=1e-5):
    """The mean ran over axis 1, counted from the front. In a batch that is the tokens, and a token
    alone has no such axis. Which number names the last axis, however many there are?"""
    return divided(x, gain, torch.sqrt((x**2).mean(1, keepdim=True) + eps))


@exercise.mistake
def over_everything(x, gain, eps=1e-5):
    """One size serves the whole tensor, so large tokens stay larger than small ones. How many sizes
    do three tokens have?"""
    return divided(x, gain, torch.sqrt((x**2).mean() + eps))


@exercise.mistake
def over_each_sentence(x, gain, eps=1e-5):
    """One size serves a whole sentence, so its large tokens stay larger than its small ones. Over
    which axis alone does the mean run?"""
    axes = tuple(range(max(0, x.dim() - 2), x.dim()))
    return divided(x, gain, torch.sqrt((x**2).mean(axes, keepdim=True) + eps))


@exercise.mistake(raises=RuntimeError)
def axis_lost(x, gain, eps=1e-5):
    """The sizes have lost their axis, so they meet the columns instead of the tokens. What does
    `keepdim` keep?"""
    return divided(x, gain, torch.sqrt((x**2).mean(-1) + eps))


@exercise.mistake
def size_detached(x, gain, eps=1e-5):
    """The right results, but the wrong gradients: the size was cut off by `no_grad`, `.detach()` or
    `.data`. When one entry of a token grows, do the other results stand still?"""
    return divided(x, gain, torch.sqrt((x**2).mean(-1, keepdim=True) + eps).detach())


stock.ignored(
    exercise,
    "eps",
    "eps is always 1e-5, whatever the caller says. It has a name in the signature; where does the "
    "formula use it?",
)


@exercise.alternative
def with_rsqrt(x, gain, eps=1e-5):
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps) * gain


@exercise.alternative
def from_a_dot_product(x, gain, eps=1e-5):
    square = torch.einsum("...d,...d->...", x, x) / x.shape[-1]
    return torch.einsum("...d,d,...->...d", x, gain, (square + eps) ** -0.5)
