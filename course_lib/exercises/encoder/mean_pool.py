"""A whole sentence in one vector: the mean of its real words."""

import torch

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.real_models import mean_pool

exercise = Exercise(
    reference=mean_pool,
    lesson="09",
    title="A sentence in one vector",
    minutes=6,
    difficulty=1,
    hints=(
        "A mean is a sum and a count. Which of the n words belong in the sum, and how many are "
        "they, if sentences have unequal lengths?",
        "The sum has the shape (..., d), and there is one count for each sentence. Which axis must "
        "the count keep, so that the two meet?",
        "A sentence without a single real word has the sum 0. By which harmless number could it be "
        "divided, and how do you leave all the other counts as they are?",
    ),
    clauses={
        "A sentence without tokens gives zeros": "empty_is_nan",
    },
    forbidden=("torch.masked.mean",),
)


@exercise.cases
def cases(draw: Draw):
    yield "three words, two of them real", (draw.normal(3, 2), _first(2, n=3))
    yield "one real word", (draw.normal(4, 3), torch.arange(4) == 2)
    yield "nothing padded", (draw.normal(5, 4), _first(5, n=5))
    yield "real words between padded ones", (draw.normal(5, 3), draw.mask(5))
    yield "sentences of unequal lengths", (draw.normal(3, 4, 2), _first(1, 4, 3, n=4))
    yield "as many sentences as a word has numbers", (draw.normal(3, 5, 3), draw.mask(3, 5))
    yield "a sentence without words", (draw.normal(2, 3, 4), _first(0, 2, n=3))
    yield "two batch dimensions", (draw.normal(2, 3, 5, 4), draw.mask(2, 3, 5))
    yield "one word", (draw.normal(1, 3), _first(1, n=1))
    yield "as many words as each has numbers", (draw.normal(4, 4), draw.mask(4))


@exercise.edges
def edges(draw: Draw):
    yield "no sentence has words", (draw.normal(2, 3, 4), _first(0, 0, n=3))
    yield "one place, and it is padding", (draw.normal(1, 4).abs(), _first(0, n=1))


def _first(*lengths, n):
    """Make the mask of sentences whose first words are real; of one alone, without a batch."""
    return (torch.arange(n) < torch.tensor(lengths).unsqueeze(-1)).squeeze(0)


@exercise.requires("what stands in the places of padding does not matter, what is real does")
def padding_is_nothing(answer, draw: Draw):
    states, mask = draw.normal(3, 5, 4), _first(2, 4, 3, n=5)
    others = 10 * draw.normal(3, 5, 4)
    plain = answer(states, mask)
    padded = answer(torch.where(mask.unsqueeze(-1), states, others), mask)
    real = answer(torch.where(mask.unsqueeze(-1), others, states), mask)
    return torch.allclose(padded, plain, atol=1e-6) and not torch.allclose(real, plain, atol=1e-3)


@exercise.requires("the mean of equal words is that word, however many they are")
def equal_words(answer, draw: Draw):
    word = draw.normal(4)
    found = answer(word.expand(3, 5, 4), _first(1, 3, 5, n=5))
    return torch.allclose(found, word.expand(3, 4), atol=1e-6)


@exercise.requires("a sentence without words gives zeros, and leaves the others alone")
def empty_sentence(answer, draw: Draw):
    states = draw.normal(2, 3, 4)
    found = answer(states, _first(0, 3, n=3))
    return (found[0] == 0).all() and torch.allclose(found[1], states[1].mean(0), atol=1e-6)


def total(states, mask):
    """Add up the real words."""
    return (states * mask.unsqueeze(-1)).sum(-2)


def number(mask):
    """Count the real words, and one where there is none."""
    return mask.sum(-1, keepdim=True).clamp(min=1)


@exercise.mistake
def divided_by_n(states, mask):
    """The sum was divided by n, all the places of the sentence. Padded places bring nothing to the
    sum: should they count?"""
    return total(states, mask) / states.shape[-2]


@exercise.mistake
def mask_ignored(states, mask):
    """The mask changes nothing: padded places were averaged like words. Who says which are real?"""
    return states.mean(-2)


@exercise.mistake(raises=RuntimeError)
def mask_without_an_axis(states, mask):
    """The mask has one value for each word, and met the columns instead of the words. Which axis
    does it lack, so that each value meets a whole word?"""
    return (states * mask).sum(-2) / number(mask)


stock.mask_inverted(
    exercise,
    sentence="The padding was averaged, and the real tokens left out. In this course True means a "
    "real token.",
)


@exercise.mistake
def only_empty_sentences_masked(states, mask):
    """Padded places were averaged as if they were words, and sentences without words set to zero.
    Which places should the sum leave out, and the count too?"""
    return states.mean(-2) * mask.any(-1, keepdim=True)


@exercise.mistake
def largest(states, mask):
    """These are the largest entries among the real words, which is a way of pooling too. What does
    a mean do with the others?"""
    found = states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(-2)
    return torch.where(mask.any(-1, keepdim=True), found, 0.0)


@exercise.mistake
def first_place(states, mask):
    """This is the state of the first place alone. Some models keep a token there that sums up the
    sentence, but here every real word is to be heard."""
    return states[..., 0, :]


@exercise.mistake
def last_place(states, mask):
    """This is the state of the last place alone, and often that is padding. Which words make a
    mean?"""
    return states[..., -1, :]


@exercise.mistake
def sum_alone(states, mask):
    """The real words were added up, and no more: a long sentence gets a long vector. What makes a
    mean of a sum?"""
    return total(states, mask)


@exercise.mistake
def empty_is_nan(states, mask):
    """A sentence without words gives NaN, for 0 / 0 is no number. It is to give zeros: what could
    its sum be divided by instead?"""
    return total(states, mask) / mask.sum(-1, keepdim=True)


@exercise.mistake
def gradient_is_nan(states, mask):
    """The results are right, but a sentence without words gets NaN as its gradient: `where` and
    `nan_to_num` take the 0 / 0 out of the result, not out of the gradient. Can you keep it from
    being computed?"""
    count = mask.sum(-1, keepdim=True)
    return torch.where(count == 0, 0.0, total(states, mask) / count)


@exercise.mistake
def axis_kept(states, mask):
    """The axis of words is still there, with the size 1. Each sentence becomes one vector: (...,
    d)."""
    return (total(states, mask) / number(mask)).unsqueeze(-2)


@exercise.mistake(raises=RuntimeError)
def count_axis_lost(states, mask):
    """Right for one sentence, not for a batch: the counts have lost their axis, so they meet the
    columns instead of the sentences. What does `keepdim` keep?"""
    return total(states, mask) / mask.sum(-1).clamp(min=1)


@exercise.mistake
def counted_over_the_batch(states, mask):
    """Right for one sentence. In a batch, each sum was divided by the real words of all sentences
    together: along which axis should they be counted?"""
    return total(states, mask) / mask.sum().clamp(min=1)


@exercise.mistake
def one_mean_for_all(states, mask):
    """Right for one sentence. In a batch, the words of all sentences went into one mean:
    `states[mask]` lays them side by side, and nobody knows any more which belong together."""
    return states[mask].mean(0)


@exercise.mistake
def over_columns(states, mask):
    """The columns of each word were averaged, so n numbers are left. Which axis holds the words,
    and which is to remain?"""
    return states.mean(-1) * mask


@exercise.mistake
def one_too_many(states, mask):
    """Every count is one too large. A sentence without words needs something to be divided by, but
    the others know their number: how can only the 0 be raised?"""
    return total(states, mask) / (mask.sum(-1, keepdim=True) + 1)


@exercise.mistake
def padding_in_the_sum(states, mask):
    """The sum holds the padding too, and was divided by the number of real tokens. What does the
    mask hide from the sum?"""
    return states.sum(-2) / mask.sum(-1, keepdim=True).clamp(min=1)


@exercise.mistake
def first_ones(states, mask):
    """The mask was only counted: as many tokens were averaged as are real, from the first on. Real
    tokens may be anywhere. What says which they are?"""
    first = torch.arange(states.shape[-2], device=states.device) < mask.sum(-1, keepdim=True)
    return mean_pool(states, first)


@exercise.mistake
def of_length_one(states, mask):
    """The mean was brought to length one. Sentences are compared so later on; here the mean itself
    is asked for."""
    return torch.nn.functional.normalize(mean_pool(states, mask), dim=-1)


@exercise.mistake(raises=(IndexError, RuntimeError))
def one_batch_axis(states, mask):
    """Right for exactly one axis of sentences: a loop over the first axis takes it for the batch,
    which one sentence alone does not have. Which axes from the end are tokens and columns?"""
    found = torch.zeros(states.shape[0], states.shape[2], dtype=states.dtype)
    for i, (rows, real) in enumerate(zip(states, mask, strict=True)):
        if real.any():
            found[i] = rows[real].mean(0)
    return found


@exercise.alternative
def words_times_weights(states, mask):
    weights = mask / mask.sum(-1, keepdim=True).clamp(min=1).to(states.dtype)
    return (weights.unsqueeze(-2) @ states).squeeze(-2)


@exercise.alternative
def sentence_after_sentence(states, mask):
    n, d = states.shape[-2:]
    means = []
    for words, real in zip(states.reshape(-1, n, d), mask.reshape(-1, n), strict=True):
        means.append(words[real].mean(0) if real.any() else states.new_zeros(d))
    return torch.stack(means).reshape(*states.shape[:-2], d)
