"""A head on a pretrained encoder: texts of unequal lengths are classified."""

import torch

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.pretraining import classify

exercise = Exercise(
    reference=classify,
    lesson="16",
    title="A head on an encoder",
    minutes=4,
    difficulty=1,
    hints=(
        "Each text has n states, and is to have one score for each class. Lesson 09 made one "
        "vector of a sentence: which function was it, and what does it need to know?",
        "A mean over real tokens is a sum and a count. Which tokens belong in both?",
    ),
    clauses={
        "Real is where": "mask_read_inverted",
    },
)


def first(*lengths: int, n: int):
    """Make the mask of texts whose first tokens are real; of one alone, without a batch."""
    return (torch.arange(n) < torch.tensor(lengths).unsqueeze(-1)).squeeze(0)


def head(draw: Draw, d_model: int, classes: int):
    return draw.normal(d_model, classes), draw.normal(classes)


@exercise.cases
def cases(draw: Draw):
    yield "three tokens, two of them real", (draw.normal(3, 2), first(2, n=3), *head(draw, 2, 4))
    yield "nothing padded", (draw.normal(5, 4), first(5, n=5), *head(draw, 4, 2))
    yield "one token", (draw.normal(1, 3), first(1, n=1), *head(draw, 3, 2))
    yield "texts of unequal lengths", (
        draw.normal(3, 4, 2), first(1, 4, 3, n=4), *head(draw, 2, 5),
    )  # fmt: skip
    yield "padding on the left", (draw.normal(5, 3), ~first(2, n=5), *head(draw, 3, 2))
    yield "two batch dimensions", (draw.normal(2, 3, 5, 4), draw.mask(2, 3, 5), *head(draw, 4, 3))
    yield (
        "as many tokens as numbers in a state",
        (draw.normal(4, 4), draw.mask(4), *head(draw, 4, 2)),
    )
    yield "as many classes as numbers in a state", (
        draw.normal(2, 5, 3), first(2, 4, n=5), *head(draw, 3, 3),
    )  # fmt: skip


@exercise.requires("padding does not matter, real tokens do")
def padding_is_nothing(answer, draw: Draw):
    states, mask, parameters = draw.normal(3, 5, 4), first(2, 4, 3, n=5), head(draw, 4, 2)
    others = 10 * draw.normal(3, 5, 4)
    plain = answer(states, mask, *parameters)
    padded = answer(torch.where(mask.unsqueeze(-1), states, others), mask, *parameters)
    real = answer(torch.where(mask.unsqueeze(-1), others, states), mask, *parameters)
    return torch.allclose(padded, plain, atol=1e-5) and not torch.allclose(real, plain, atol=1e-3)


@exercise.requires("a text gets the same scores alone and in a batch with longer ones")
def alone(answer, draw: Draw):
    states, parameters = draw.normal(2, 6, 4), head(draw, 4, 3)
    together = answer(states, first(2, 6, n=6), *parameters)
    by_itself = answer(states[0, :2], torch.ones(2).bool(), *parameters)
    return together.shape == (2, 3) and torch.allclose(together[0], by_itself, atol=1e-5)


def pooled(states, mask, count=None):
    """Add up the real tokens, and divide by their number or another one."""
    count = mask.sum(-1, keepdim=True).clamp(min=1) if count is None else count
    return (states * mask.unsqueeze(-1)).sum(-2) / count


@exercise.mistake
def padding_averaged(states, mask, w, b):
    """The mask changes nothing: padding was averaged like tokens, so a text's scores depend on the
    longest one of its batch."""
    return states.mean(-2) @ w + b


@exercise.mistake
def divided_by_n(states, mask, w, b):
    """The sum was divided by all n places. Padding brings nothing to the sum: should it count?"""
    return pooled(states, mask, states.shape[-2]) @ w + b


@exercise.mistake
def added_up(states, mask, w, b):
    """The real tokens were added up, so a long text gets large scores. What makes a mean of a
    sum?"""
    return pooled(states, mask, 1) @ w + b


stock.mask_inverted(
    exercise,
    sentence="The padding was averaged, and the real tokens left out. In this course True means a "
    "real token.",
)


@exercise.mistake
def bias_in_the_sum(states, mask, w, b):
    """The head was applied to each token and its results were added up, with a bias for each token.
    How often should it be added?"""
    scores = states @ w + b
    return (scores * mask.unsqueeze(-1)).sum(-2)


@exercise.mistake
def no_bias(states, mask, w, b):
    """The bias is missing: what does a linear head add to its product?"""
    return pooled(states, mask) @ w


@exercise.mistake
def first_state(states, mask, w, b):
    """Only the first token's state was used. BERT has a token there that is trained for this;
    here every real token is to be heard."""
    return states[..., 0, :] @ w + b


@exercise.mistake
def last_state(states, mask, w, b):
    """Only the last place was used, and often that is padding."""
    return states[..., -1, :] @ w + b


@exercise.mistake
def probabilities(states, mask, w, b):
    """The scores were made into probabilities. The loss takes scores, and does the rest."""
    return classify(states, mask, w, b).softmax(-1)


@exercise.mistake
def a_score_for_each_token(states, mask, w, b):
    """Each token has scores of its own, and no mean was taken. How many rows should a text have?"""
    return states @ w + b


@exercise.mistake
def largest(states, mask, w, b):
    """The largest entries were taken, which is a way of pooling too. A mean is asked for."""
    found = states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(-2)
    return torch.where(mask.any(-1, keepdim=True), found, 0.0) @ w + b


@exercise.alternative
def head_first(states, mask, w, b):
    scores = (states @ w) * mask.unsqueeze(-1)
    return scores.sum(-2) / mask.sum(-1, keepdim=True).clamp(min=1) + b
