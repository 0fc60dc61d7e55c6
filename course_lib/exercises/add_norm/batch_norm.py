"""The columns are brought to one size instead of the tokens, and sentences come to meet."""

import torch

from course_lib.add_norm import batch_norm
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import NORMS

exercise = Exercise(
    reference=batch_norm,
    lesson="07_batch_norm",
    title="Columns of one size",
    minutes=15,
    difficulty=3,
    hints=(
        "x has three axes. Layer norm takes the mean over the last of them; over which ones does "
        "it run here, and how many numbers are left?",
        "Two sentences of 3 tokens and of 1 token are padded to 3. By which number is the sum of a "
        "column divided, and how do you keep the padding out of that sum?",
        "A padded token counts in no mean. It still gets a result: which mean and which variance "
        "does it get it with?",
    ),
    clauses={
        "where `mask` is True": "mask_ignored",
        "padded tokens are normalised with them too": "padding_left_alone",
        "both are 0": "where no token is real",
        "Tokens may lie far from zero": "tokens far from zero",
        "These are the statistics of training": GIVEN,
        "none are kept": GIVEN,
    },
    forbidden=NORMS,
)


def words(draw: Draw, *shape: int):
    d = shape[-1]
    return 2 + 3 * draw.normal(*shape), draw.normal(d), draw.normal(d)


@exercise.cases
def cases(draw: Draw):
    yield "one sentence", words(draw, 1, 3, 2)
    yield "two sentences", words(draw, 2, 3, 4)
    yield "three sizes the same", words(draw, 3, 3, 3)
    yield "every column of equal entries", (torch.full((1, 3, 2), 2.0), *words(draw, 1, 2)[1:])
    x, gain, bias = words(draw, 2, 4, 3)
    padding = torch.tensor([[True, True, True, False], [True, False, False, False]])
    yield "a sentence of three tokens and one of one", (x, gain, bias, padding)
    yield "real tokens anywhere", (*words(draw, 3, 4, 2), draw.mask(3, 4))
    yield "small tokens, another eps", (0.1 * x, gain, bias, padding, 0.5)
    one = torch.tensor([[False, False, False], [False, True, False]])
    # under a small eps, rounding alone moves what is divided by its root
    yield "one real token", (*words(draw, 2, 3, 4), one, 0.5)
    yield "sentences of one token", words(draw, 3, 1, 2)


@exercise.edges
def edges(draw: Draw):
    yield "another eps without a mask", (*words(draw, 2, 4, 3), None, 0.5)
    x, gain, bias = words(draw, 2, 4, 3)
    padding = torch.tensor([[True, True, True, False], [True, False, False, False]])
    yield "an eps of 0", (0.1 * x, gain, bias, padding, 0.0)


@exercise.requires("with gain 1 and bias 0, each column of real tokens has mean 0 and variance 1")
def standard(answer, draw: Draw):
    x, mask = 2 + 3 * draw.normal(3, 5, 4), draw.mask(3, 5)
    found = answer(x, torch.ones(4), torch.zeros(4), mask)[mask]
    return torch.allclose(found.mean(0), torch.zeros(4), atol=1e-5) and torch.allclose(
        found.var(0, correction=0), torch.ones(4), atol=1e-3
    )


@exercise.requires("a column may grow, and padding may hold anything: real tokens stay as they are")
def moved(answer, draw: Draw):
    (x, gain, bias), mask = words(draw, 3, 5, 2), draw.mask(3, 5)
    plain = answer(x, gain, bias, mask)[mask]
    other = torch.where(mask.unsqueeze(-1), torch.tensor([3.0, 20.0]) * x, 100.0)
    again = answer(other, gain, bias, mask)[mask]
    return (plain - bias).abs().max() > 0 and torch.allclose(again, plain, atol=1e-3)


@exercise.requires("a token moves the tokens of other sentences, and only in its own column")
def other_sentences(answer, draw: Draw):
    x, gain, bias = words(draw, 2, 4, 3)
    plain = answer(x, gain, bias)
    x[0, 0, 1] += 5
    moved = (answer(x, gain, bias) - plain)[1].abs().amax(0) > 1e-6
    return moved.tolist() == [False, True, False]


@exercise.requires("tokens far from zero are normalised as they are near it")
def far_from_zero(answer, draw: Draw):
    # multiples of 1/16, which a float32 holds that far away as well
    x, (_, gain, bias), mask = draw.integers(-48, 49, 3, 4, 6) / 16, words(draw, 6), draw.mask(3, 4)
    near, far = answer(x, gain, bias, mask)[mask], answer(x + 8192, gain, bias, mask)[mask]
    # a float64 holds them farther away
    doubles = answer(x.double() + 2**30, gain.double(), bias.double(), mask)[mask]
    return (near - bias).abs().max() > 0.1 and all(
        torch.allclose(found, near.to(found), atol=2e-2) for found in (far, doubles)
    )


@exercise.requires("where no token is real, mean and variance are 0")
def nothing_real(answer, draw: Draw):
    x, gain, bias = words(draw, 2, 3, 4)
    found = answer(x, gain, bias, torch.zeros(2, 3, dtype=torch.bool), 0.25)
    return torch.allclose(found, 2 * gain * x + bias, atol=1e-4)


def real_words(x, mask):
    """Return where the tokens are real: everywhere, where there is no mask."""
    if mask is None:
        return torch.ones_like(x[..., 0], dtype=torch.bool)
    return mask


def statistics(x, real, correction=0):
    """Return mean and variance of each column over the real tokens."""
    chosen = x[real]
    mean = chosen.mean(0)
    return mean, ((chosen - mean) ** 2).sum(0) / max(1, len(chosen) - correction)


def normed(x, gain, bias, eps, mean, variance):
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


@exercise.mistake
def divided_by_all_words(x, gain, bias, mask=None, eps=1e-5):
    """Only real tokens were summed, but the sums were divided by the number of all tokens. By how
    many is the mean of 4 real tokens among 8 divided?"""
    real = real_words(x, mask).unsqueeze(-1)
    mean = (x * real).mean((0, 1))
    variance = ((x - mean) ** 2 * real).mean((0, 1))
    return normed(x, gain, bias, eps, mean, variance)


@exercise.mistake
def padding_as_zeros(x, gain, bias, mask=None, eps=1e-5):
    """Padded tokens were set to zero and then counted in. A zero is an entry like any other: it
    pulls the mean towards itself. How can a token have no part in a mean?"""
    zeroed = x * real_words(x, mask).unsqueeze(-1)
    variance, mean = torch.var_mean(zeroed, (0, 1), correction=0)
    return normed(x, gain, bias, eps, mean, variance)


@exercise.mistake
def padding_overwritten(x, gain, bias, mask=None, eps=1e-5):
    """Padded tokens were overwritten with zeros, which were counted in and normalised like tokens.
    How can a token have no part in a mean, and stay what it is?"""
    return batch_norm(x * real_words(x, mask).unsqueeze(-1), gain, bias, None, eps)


@exercise.mistake
def padding_in_the_variance(x, gain, bias, mask=None, eps=1e-5):
    """Padding was kept out of the mean, and is still in the variance. Which tokens make up the
    average of the squares?"""
    mean, _ = statistics(x, real_words(x, mask))
    return normed(x, gain, bias, eps, mean, ((x - mean) ** 2).mean((0, 1)))


@exercise.mistake
def padding_zeroed(x, gain, bias, mask=None, eps=1e-5):
    """Real tokens are right, and padded ones were set to zero. The docstring normalises them too:
    later layers hide them behind a mask of their own."""
    return batch_norm(x, gain, bias, mask, eps) * real_words(x, mask).unsqueeze(-1)


@exercise.mistake
def padding_left_alone(x, gain, bias, mask=None, eps=1e-5):
    """Real tokens are right, and padded ones came back as they were. What does the docstring do
    with them?"""
    real = real_words(x, mask).unsqueeze(-1)
    return torch.where(real, batch_norm(x, gain, bias, mask, eps), x)


@exercise.mistake
def real_words_alone(x, gain, bias, mask=None, eps=1e-5):
    """Only the real tokens came back, in one long row. The result is to have the shape of x: what
    is the selection good for, and what should be normalised?"""
    return batch_norm(x, gain, bias, mask, eps)[real_words(x, mask)]


@exercise.mistake
def sentence_by_sentence(x, gain, bias, mask=None, eps=1e-5):
    """Each sentence got a mean and a variance of its own: the averages ran over its tokens alone.
    Over which other axis do they run in a batch norm?"""
    pairs = zip(x, real_words(x, mask), strict=True)
    done = [batch_norm(words[None], gain, bias, real[None], eps) for words, real in pairs]
    return torch.cat(done)


@exercise.mistake
def place_by_place(x, gain, bias, mask=None, eps=1e-5):
    """Each place in the sentence got a mean and a variance of its own: the averages ran over the
    sentences alone. Over which other axis do they run?"""
    turned = sentence_by_sentence(x.mT.mT.transpose(0, 1), gain, bias, real_words(x, mask).T, eps)
    return turned.transpose(0, 1)


@exercise.mistake
def word_by_word(x, gain, bias, mask=None, eps=1e-5):
    """This is layer norm: mean and variance ran over the entries of each token. Which axis is kept
    here, and which two are averaged over?"""
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return normed(x, gain, bias, eps, mean, variance)


@exercise.mistake
def over_everything(x, gain, bias, mask=None, eps=1e-5):
    """One mean and one variance serve all the columns. How many means do tokens of four entries
    have in a batch norm?"""
    mean, variance = statistics(x, real_words(x, mask))
    together = (variance + mean**2).mean() - mean.mean() ** 2
    return normed(x, gain, bias, eps, mean.mean(), together)


@exercise.mistake
def divided_by_one_less(x, gain, bias, mask=None, eps=1e-5):
    """The variance was divided by one less than the number of tokens, as `var` and `std` do unless
    they are told otherwise. What does an average of squares divide by?"""
    return normed(x, gain, bias, eps, *statistics(x, real_words(x, mask), correction=1))


@exercise.mistake
def eps_beside_the_root(x, gain, bias, mask=None, eps=1e-5):
    """eps was added to the root and not under it. Which of the two does the formula have?"""
    mean, variance = statistics(x, real_words(x, mask))
    return gain * (x - mean) / (torch.sqrt(variance) + eps) + bias


@exercise.mistake
def no_root(x, gain, bias, mask=None, eps=1e-5):
    """The root is missing: each column was divided by its variance. Make a column ten times larger:
    by how much does its variance grow, and what should become of the result?"""
    mean, variance = statistics(x, real_words(x, mask))
    return gain * (x - mean) / (variance + eps) + bias


@exercise.mistake
def no_eps(x, gain, bias, mask=None, eps=1e-5):
    """eps plays no part: a column of equal entries gives 0 / 0, which is NaN. What keeps the
    formula's divisor away from 0?"""
    return batch_norm(x, gain, bias, mask, 0.0)


@exercise.mistake
def mean_left_in(x, gain, bias, mask=None, eps=1e-5):
    """The mean was subtracted for the variance alone, and is still in what was divided. Which x
    does the formula divide?"""
    _, variance = statistics(x, real_words(x, mask))
    return gain * x / torch.sqrt(variance + eps) + bias


@exercise.mistake
def gain_and_bias_swapped(x, gain, bias, mask=None, eps=1e-5):
    """Gain and bias have changed places. Which of the two is multiplied, and which is added?"""
    return batch_norm(x, bias, gain, mask, eps)


@exercise.mistake
def gain_forgotten(x, gain, bias, mask=None, eps=1e-5):
    """The gain plays no part: every column keeps the size 1. How could the model make one column
    count for more than another?"""
    return batch_norm(x, torch.ones_like(gain), bias, mask, eps)


@exercise.mistake
def bias_forgotten(x, gain, bias, mask=None, eps=1e-5):
    """The bias plays no part. What should a column of equal entries come out as?"""
    return batch_norm(x, gain, torch.zeros_like(bias), mask, eps)


@exercise.mistake
def statistics_detached(x, gain, bias, mask=None, eps=1e-5):
    """The right results, but the wrong gradients: mean and variance were cut off by `no_grad`,
    `.detach()` or `.data`. When one token moves, do the other results stand still?"""
    return normed(x, gain, bias, eps, *statistics(x.detach(), real_words(x, mask)))


@exercise.mistake
def mean_of_means(x, gain, bias, mask=None, eps=1e-5):
    """Each sentence counts the same, however many real tokens it has: averages of its own tokens
    were averaged again. By what is a sum over all real tokens divided?"""
    real = real_words(x, mask)
    share = (real / real.sum(1, keepdim=True).clamp(min=1) / len(x)).unsqueeze(-1)
    mean = (share * x).sum((0, 1))
    return normed(x, gain, bias, eps, mean, (share * (x - mean) ** 2).sum((0, 1)))


stock.ignored(
    exercise,
    "mask",
    "Padding was counted in: the mask is accepted and changes nothing. Whose mean would a batch "
    "of short sentences come close to, if padding were zeros?",
)
stock.mask_inverted(
    exercise,
    "mask",
    "The mask is read the wrong way round: True means that the token is real.",
)
stock.mask_as_condition(exercise)
stock.ignored(
    exercise,
    "eps",
    "eps is always 1e-5, whatever the caller says. It has a name in the signature; where does the "
    "formula use it?",
)


@exercise.mistake
def mean_of_squares_less_square_of_mean(x, gain, bias, mask=None, eps=1e-5):
    """The variance is the mean of the squares less the square of the mean. Far from zero these are
    two large numbers that differ in their last digits, which a float does not hold. What is small
    if you take the mean off first?"""
    chosen = x[real_words(x, mask)]
    count = max(1, len(chosen))
    mean = chosen.sum(0) / count
    return normed(x, gain, bias, eps, mean, chosen.square().sum(0) / count - mean.square())


@exercise.alternative
def choosing_the_real_words(x, gain, bias, mask=None, eps=1e-5):
    chosen = x[real_words(x, mask)]
    if not len(chosen):
        chosen = torch.zeros_like(x[0])
    variance, mean = torch.var_mean(chosen, dim=0, correction=0)
    return (x - mean) * torch.rsqrt(variance + eps) * gain + bias


@exercise.alternative
def weighing_every_word(x, gain, bias, mask=None, eps=1e-5):
    real = real_words(x, mask).unsqueeze(-1).to(x.dtype)
    number = real.sum().clamp(min=1)
    mean = torch.sum(x * real, dim=(0, 1)) / number
    variance = torch.sum(real * (x - mean) ** 2, dim=(0, 1)) / number
    return gain * ((x - mean) / (variance + eps).sqrt()) + bias
