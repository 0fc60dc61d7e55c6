"""The loss of a text under a language model, with a fault: to be mended."""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import Draw, Exercise
from course_lib.language_model import next_token_losses

exercise = Exercise(
    reference=next_token_losses,
    lesson="10",
    title="Find the bug: a loss too good to be true",
    minutes=6,
    difficulty=2,
    hints=(
        "Take a text of three tokens, and write down which row of the logits was computed from "
        "which of them. Which token does the first row score?",
        "A model's embedding and output share one table. How hard is it to say which token one has "
        "just read? And is that what the loss here asks for?",
    ),
    clauses={
        "scores the token after them": "the_one_before",
    },
    forbidden=("torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss"),
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.normal(2, 3), torch.tensor([0, 2]))
    yield "one token again and again", (draw.normal(4, 3), torch.tensor([1, 1, 1, 1]))
    yield "one token", (draw.normal(1, 4), torch.tensor([3]))
    yield "a text", (draw.normal(9, 5), draw.integers(0, 5, 9))
    yield "as many tokens as in the vocabulary", (draw.normal(6, 6), draw.integers(0, 6, 6))
    yield "a batch of texts", (draw.normal(3, 7, 5), draw.integers(0, 5, 3, 7))
    yield "two batch dimensions", (draw.normal(2, 3, 4, 5), draw.integers(0, 5, 2, 3, 4))
    yield "large logits", (300 * draw.normal(4, 5), draw.integers(0, 5, 4))


@exercise.requires("a model that is sure of each next token loses nothing, one that copies much")
def sure(answer, draw: Draw):
    tokens = torch.arange(8)
    knows = 100.0 * torch.eye(9)[tokens + 1]
    copies = 100.0 * torch.eye(9)[tokens]
    return (answer(knows, tokens) < 0.01).all() and (answer(copies, tokens) > 50).all()


@exercise.requires("equal logits cost log(vocab) at each token but the first")
def equal(answer, draw: Draw):
    found = answer(torch.zeros(2, 6, 7), draw.integers(0, 7, 2, 6))
    return found.shape == (2, 5) and torch.allclose(found, torch.tensor(7.0).log())


def looked_up(logits, tokens):
    return -logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


@exercise.hand_out
def its_own_token(logits, tokens):
    """The fault was `[..., :-1]` for `[..., 1:]`: each row was asked for the token that the model
    had just read, so it learned to copy its input, and the loss fell towards 0."""
    log_probabilities = logits.log_softmax(dim=-1)
    # the last row scores a token that is not in the text
    scoring = log_probabilities[..., :-1, :]
    # each other row scores the token one place further right
    following = tokens[..., :-1]
    # look up what the tokens that came had been given
    return -scoring.gather(-1, following.unsqueeze(-1)).squeeze(-1)


@exercise.mistake
def the_one_before(logits, tokens):
    """Now each row is asked for the token *before* the one that it has just read. Which way does a
    language model look?"""
    return looked_up(logits[..., 1:, :], tokens[..., :-1])


@exercise.mistake
def both_cut(logits, tokens):
    """Both lost their first place, so each row is still asked for the token that it has read."""
    return looked_up(logits[..., 1:, :], tokens[..., 1:])


@exercise.mistake
def rolled(logits, tokens):
    """The last row is asked for the first token of the text, as if the text went round in a circle.
    Which row has nothing to score?"""
    return looked_up(logits, tokens.roll(-1, -1))


@exercise.mistake
def averaged(logits, tokens):
    """The losses were averaged: one for each token but the first is asked for."""
    return next_token_losses(logits, tokens).mean(-1)


@exercise.mistake
def sign(logits, tokens):
    """The shift is right, but the sign is missing now: the logarithm of a probability is
    negative, a loss is not."""
    return -next_token_losses(logits, tokens)


@exercise.mistake
def two_further(logits, tokens):
    """Each row is asked for the token after the next one. Of two shifts one is too many."""
    if tokens.shape[-1] < 3:
        return looked_up(logits[..., :-1, :], tokens[..., 1:])
    return looked_up(logits[..., :-2, :], tokens[..., 2:])


@exercise.alternative
def by_torch(logits, tokens):
    flat, following = logits[..., :-1, :].flatten(0, -2), tokens[..., 1:]
    return F.nll_loss(flat.log_softmax(-1), following.flatten(), reduction="none").view(
        following.shape
    )
