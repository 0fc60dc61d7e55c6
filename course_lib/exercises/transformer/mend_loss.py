"""The loss of one pass over a target, with a fault to be mended."""

import torch
from torch.nn import functional as F

from course_lib.answers.answer import Probe
from course_lib.checking.exercise import Draw, Exercise
from course_lib.masks import shift_right
from course_lib.transformer import greedy, next_token_loss

VOCAB, START, STOP = 13, 1, 10

exercise = Exercise(
    reference=next_token_loss,
    lesson="08",
    title="Find the bug: a loss that is too good",
    minutes=6,
    difficulty=2,
    hints=(
        "Two cases pass: a target of one token, and a target that repeats one token. What may be "
        "wrong with the order of the tokens that are read, and not show there?",
        "Take the target b, e, l, t, and write down what is read at each position, and below it "
        "what must be predicted there. At which positions are the two the same?",
    ),
    clauses={
        "reads the target shifted right": "not_shifted",
    },
)


def drawn(draw: Draw, *target: int, start: int = START) -> tuple:
    """Draw a model whose next token depends on all that was read, a source and a target."""
    probe = Probe("counting_translator", (VOCAB, draw.number(2, 7), STOP, True))
    *batch, _ = target
    return probe, draw.integers(0, STOP, *batch, 4), draw.integers(2, STOP, *target), start


@exercise.cases
def cases(draw: Draw):
    yield "a target of one token", drawn(draw, 2, 1)
    model, source, target, start = drawn(draw, 2, 3)
    yield "one token, again and again", (model, source, torch.full_like(target, 7), start)
    yield "two tokens", drawn(draw, 1, 2)
    yield "four tokens, without a batch", drawn(draw, 4)
    yield "three targets of five tokens", drawn(draw, 3, 5)
    model, source, target, start = drawn(draw, 2, 3)
    yield "a source of one token", (model, source[:, :1], target, start)
    yield "another start", drawn(draw, 2, 4, start=12)
    yield "two batch dimensions", drawn(draw, 3, 2, 4)
    yield "as many targets as tokens", drawn(draw, 4, 4)
    model, source, target, start = drawn(draw, 2, 4)
    target[0, 1], target[1, 2], target[1, 3] = 0, 0, START
    yield "a target that holds token 0 and the start", (model, source, target, start)


@exercise.edges
def edges(draw: Draw):
    _, source, target, start = drawn(draw, 2, 3)
    far = torch.full_like(target, VOCAB + 25)
    many = Probe("counting_translator", (VOCAB + 30, draw.number(2, 7), STOP, True))
    yield "tokens that the model finds all but impossible", (many, source, far, start)


@exercise.requires("the loss of a batch is the mean of the losses of its rows")
def mean_of_rows(answer, draw: Draw):
    model, source, target, start = drawn(draw, 4, 3)
    rows = [answer(model, a[None], b[None], start) for a, b in zip(source, target, strict=True)]
    return torch.allclose(answer(model, source, target, start), torch.stack(rows).mean())


@exercise.requires("what the model itself writes has a lower loss than any other target")
def own_words(answer, draw: Draw):
    model, source, target, start = drawn(draw, 3, 6)
    written = greedy(model.make(), source, start, VOCAB, most=6)
    lowest = answer(model, source, written, start)
    return all(
        lowest < answer(model, source, target.roll(places, -1), start) - 0.1 for places in range(4)
    )


@exercise.hand_out
def first_left_out(model, source, target, start):
    """The fault was the slice `1:` for `:-1`: behind the start came t2, t3 and so on, so that each
    position but the first read the very token that it had to predict. The shapes were right, and
    the loss fell as the model learned to copy what it read."""
    # let the decoder read the target one position late, behind the start
    first = torch.full_like(target[..., :1], start)
    read = torch.cat([first, target[..., 1:]], dim=-1)
    # score all positions in one pass
    logits = model(source, read)
    # compare each position's logits with the target there
    return F.cross_entropy(logits.flatten(0, -2), target.flatten())


def loss_of(logits, target):
    """Return the mean cross-entropy."""
    return F.cross_entropy(logits.flatten(0, -2), target.flatten())


@exercise.mistake
def not_shifted(model, source, target, start):
    """The decoder reads the whole target now, without the start: the first position reads its
    answer too."""
    return loss_of(model(source, target), target)


@exercise.mistake
def start_at_the_end(model, source, target, start):
    """The start comes last now, and each position reads the token after the one that it predicts.
    On which side does the start belong, and which token is never read?"""
    first = torch.full_like(target[..., :1], start)
    return loss_of(model(source, torch.cat([target[..., 1:], first], dim=-1)), target)


@exercise.mistake
def start_behind(model, source, target, start):
    """The start comes last now, behind all tokens but the last: each position but the last reads
    the token that it must predict."""
    first = torch.full_like(target[..., :1], start)
    return loss_of(model(source, torch.cat([target[..., :-1], first], dim=-1)), target)


@exercise.mistake
def closed_to_a_ring(model, source, target, start):
    """The last token of the target is in front, where the start should be: no model has it when it
    begins to write."""
    return loss_of(model(source, target.roll(1, -1)), target)


@exercise.mistake
def shifted_twice(model, source, target, start):
    """The target is read two positions late: each position misses the token just before it."""
    return loss_of(model(source, shift_right(shift_right(target, start), start)), target)


@exercise.mistake
def against_what_was_read(model, source, target, start):
    """The logits are compared with the tokens that were read, not with those that come next."""
    read = shift_right(target, start)
    return loss_of(model(source, read), read)


@exercise.mistake
def token_0_left_out(model, source, target, start):
    """Token 0 was left out of the mean. Nothing here is padding: what does `ignore_index` leave
    out?"""
    logits = model(source, shift_right(target, start))
    return F.cross_entropy(logits.flatten(0, -2), target.flatten(), ignore_index=0)


@exercise.mistake
def start_left_out(model, source, target, start):
    """Targets that are the start were left out of the mean. A target may hold it like any other
    token: what does `ignore_index` leave out?"""
    logits = model(source, shift_right(target, start))
    return F.cross_entropy(logits.flatten(0, -2), target.flatten(), ignore_index=start)


@exercise.mistake
def labels_shifted(model, source, target, start):
    """The labels were shifted in place of what is read: nothing stands before the target, and its
    first token is never predicted. Which token does the decoder read where it has none yet?"""
    return loss_of(model(source, target)[..., :-1, :], target[..., 1:])


@exercise.mistake
def log_of_a_softmax(model, source, target, start):
    """A target that the model finds all but impossible has an infinite loss: its probability has
    become 0 before its logarithm was taken. The last line was right before."""
    probabilities = model(source, shift_right(target, start)).softmax(-1)
    return -probabilities.gather(-1, target.unsqueeze(-1)).log().mean()


@exercise.mistake(raises=RuntimeError)
@torch.no_grad()
def without_gradients(model, source, target, start):
    """The model was asked under `no_grad`, as for writing. Here it is to learn from the loss: how
    would a gradient reach it?"""
    return next_token_loss(model, source, target, start)


@exercise.mistake
def last_position_alone(model, source, target, start):
    """Only the last position counts. Training compares all of them in one pass."""
    return loss_of(model(source, shift_right(target, start))[..., -1:, :], target[..., -1:])


@exercise.mistake(raises=(ValueError, RuntimeError))
def first_token_unasked(model, source, target, start):
    """The first token of the target is not predicted any more. The start is there so that it can
    be."""
    logits = model(source, shift_right(target, start))
    return loss_of(logits[..., 1:, :], target[..., 1:])


@exercise.mistake
def summed(model, source, target, start):
    """The losses of the tokens are added up. The last line was right before: it takes their
    mean."""
    logits = model(source, shift_right(target, start))
    return F.cross_entropy(logits.flatten(0, -2), target.flatten(), reduction="sum")


@exercise.mistake
def probabilities_given(model, source, target, start):
    """A softmax comes before `F.cross_entropy`, which has one of its own. The last line was right
    before."""
    return loss_of(model(source, shift_right(target, start)).softmax(-1), target)


@exercise.alternative
def by_shift_right(model, source, target, start):
    return loss_of(model(source, shift_right(target, start)), target)


@exercise.alternative
def one_position_more(model, source, target, start):
    read = F.pad(target, (1, 0), value=start)
    logits = model(source, read)[..., :-1, :]
    return -logits.log_softmax(-1).gather(-1, target.unsqueeze(-1)).mean()
