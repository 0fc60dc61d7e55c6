"""A few tokens become one: keys and values by a convolution that takes long steps."""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import CONVOLUTION
from course_lib.efficient.memory_compressed import compress

exercise = Exercise(
    reference=compress,
    lesson="14_memory_compressed",
    title="Three tokens, one memory",
    minutes=15,
    difficulty=2,
    hints=(
        "Seven tokens, a stride of three, a width of three: which tokens does state 0 cover, which "
        "state 1, which state 2? How many of them does the text not have?",
        "With a width of four and a stride of two, neighbouring states share tokens. With a width "
        "of one and a stride of two, some tokens belong to nobody. Does your way bear both?",
        "For one place w of the window, all states meet the same matrix W_w at once. Which tokens "
        "do they bring, and what does a slice with a step give you?",
    ),
    clauses={
        "meets the leftmost token": "reversed_window",
        "tokens after the last one are zeros": "last_word_repeated",
        "there are ceil(n / stride) states": "incomplete_dropped",
        "Time O": GIVEN,
    },
    # of a token that no state reaches nothing is seen
    equivalent=("0 -> -1",),
    forbidden=CONVOLUTION,
)


def text(draw: Draw, *shape: int, width: int, d_in: int, d_out: int):
    return draw.normal(*shape, d_in), draw.normal(width, d_in, d_out)


@exercise.cases
def cases(draw: Draw):
    yield "six tokens, three each", (*text(draw, 6, width=3, d_in=2, d_out=4), 3)
    yield "seven tokens, three each", (*text(draw, 7, width=3, d_in=4, d_out=2), 3)
    yield "tokens shared by two states", (*text(draw, 8, width=4, d_in=3, d_out=5), 2)
    yield "tokens left out", (*text(draw, 9, width=2, d_in=2, d_out=3), 4)
    yield "every other token", (*text(draw, 6, width=1, d_in=3, d_out=2), 2)
    yield "a state for each token", (*text(draw, 4, width=3, d_in=2, d_out=5), 1)
    yield "a window longer than the text", (*text(draw, 3, width=5, d_in=2, d_out=4), 2)
    yield "tokens as wide as states", (*text(draw, 8, width=3, d_in=3, d_out=3), 3)
    yield "one token", (*text(draw, 1, width=2, d_in=4, d_out=3), 3)
    yield "a batch of texts", (*text(draw, 2, 7, width=3, d_in=5, d_out=4), 2)
    yield "two batch dimensions", (*text(draw, 3, 2, 5, width=2, d_in=3, d_out=4), 3)
    yield "as many tokens as each has numbers", (*text(draw, 3, width=2, d_in=3, d_out=4), 2)


@exercise.edges
def edges(draw: Draw):
    yield "a width of several strides", (*text(draw, 9, width=7, d_in=2, d_out=3), 2)


@exercise.requires("one token reaches those states alone whose windows cover it")
def who_covers_it(answer, draw: Draw):
    x, weight = text(draw, 10, width=3, d_in=2, d_out=4)
    found = answer(x, weight, 2)
    changed = torch.cat([x[:4], x[4:5] + 1, x[5:]])
    differ = (answer(changed, weight, 2) != found).any(-1)
    return differ.tolist() == [False, True, True, False, False]


@exercise.requires("a text moved by one stride moves its states by one")
def moved(answer, draw: Draw):
    x, weight = text(draw, 11, width=4, d_in=3, d_out=2)
    found = answer(x, weight, 3)
    return found.std() > 0 and torch.allclose(answer(x[3:], weight, 3), found[1:], atol=1e-5)


@exercise.requires("matrices that pick tokens give back those tokens, in their order")
def picked(answer, draw: Draw):
    x = draw.normal(7, 3)
    return all(
        torch.allclose(
            answer(x, torch.eye(3) * (torch.arange(2) == place).view(2, 1, 1), 2),
            F.pad(x, (0, 0, 0, 1))[place::2],
        )
        for place in (0, 1)
    )


def windows(x, width, stride, missing):
    """Cut a text, with so many tokens of zeros behind it, into windows."""
    return F.pad(x, (0, 0, 0, missing)).unfold(-2, width, stride)


def states(x, weight, stride):
    tokens = windows(x, len(weight), stride, len(weight) - 1)
    return torch.einsum("...ndw,wdo->...no", tokens, weight)


@exercise.mistake
def incomplete_dropped(x, weight, stride):
    """The last tokens are missing: a state that reaches past the text was not made. What are the
    tokens after the last one to be?"""
    if x.shape[-2] < len(weight):
        return x.new_zeros(*x.shape[:-2], 0, weight.shape[-1]) + 0 * (x.sum() + weight.sum())
    return torch.einsum("...ndw,wdo->...no", windows(x, len(weight), stride, 0), weight)


@exercise.mistake
def filled_to_a_stride(x, weight, stride):
    """The text was filled up to a whole number of strides, not as far as the last state reaches.
    Where does the last state begin, and how wide is its window?"""
    missing = -x.shape[-2] % stride
    if x.shape[-2] + missing < len(weight):
        return x.new_zeros(*x.shape[:-2], 0, weight.shape[-1]) + 0 * (x.sum() + weight.sum())
    return torch.einsum("...ndw,wdo->...no", windows(x, len(weight), stride, missing), weight)


@exercise.mistake
def one_state_too_many(x, weight, stride):
    """There may be one state too many, which covers nothing but zeros: a state begins at a token of
    the text. How many zeros can the last state need at most?"""
    tokens = windows(x, len(weight), stride, len(weight))
    return torch.einsum("...ndw,wdo->...no", tokens, weight)


@exercise.mistake
def zeros_in_front(x, weight, stride):
    """The zeros were put in front of the text, so every state begins too far to the left. Which
    token does state 0 begin with?"""
    count = -(-x.shape[-2] // stride)
    missing = max(0, (count - 1) * stride + len(weight) - x.shape[-2])
    tokens = F.pad(x, (0, 0, missing, 0)).unfold(-2, len(weight), stride)
    return torch.einsum("...ndw,wdo->...no", tokens, weight)


@exercise.mistake
def centred(x, weight, stride):
    """The windows are centred on their first token. State i covers tokens i stride to i stride +
    width - 1: nothing to the left."""
    side = len(weight) // 2
    padded = F.pad(x, (0, 0, side, len(weight) - 1))
    count = -(-x.shape[-2] // stride)
    tokens = padded.unfold(-2, len(weight), stride)[..., :count, :, :]
    return torch.einsum("...ndw,wdo->...no", tokens, weight)


@exercise.mistake
def reversed_window(x, weight, stride):
    """The matrices were taken from the other end: weight[0] met the rightmost token of a state."""
    return states(x, weight.flip(0), stride)


@exercise.mistake
def stride_ignored(x, weight, stride):
    """There is a state for every token: `stride` changes nothing."""
    return states(x, weight, 1)


@exercise.mistake
def end_to_end(x, weight, stride):
    """The windows were laid end to end, as if the stride were the width. How far is it from the
    first token of one state to the first token of the next?"""
    return states(x, weight, len(weight))


@exercise.mistake
def first_word_alone(x, weight, stride):
    """Each state is its first token alone: only weight[0] was used. Who else is in the window?"""
    return x[..., ::stride, :] @ weight[0] + 0 * weight.sum()


@exercise.mistake
def order_lost(x, weight, stride):
    """The tokens of a window were summed before they met a matrix, so their order is lost. Each
    place has a matrix of its own."""
    tokens = windows(x, len(weight), stride, len(weight) - 1)
    return tokens.sum(-1) @ weight.sum(0)


@exercise.mistake
def averaged(x, weight, stride):
    """The sum was divided by the width. The formula has a sum, and no mean: the matrices are
    learned."""
    return states(x, weight, stride) / len(weight)


@exercise.mistake
def last_word_repeated(x, weight, stride):
    """Behind the text its last token was repeated, where tokens of zeros belong."""
    behind = x[..., -1:, :].expand(*x.shape[:-2], len(weight) - 1, x.shape[-1])
    tokens = torch.cat([x, behind], dim=-2).unfold(-2, len(weight), stride)
    return torch.einsum("...ndw,wdo->...no", tokens, weight)


@exercise.alternative
def place_by_place(x, weight, stride):
    padded = F.pad(x, (0, 0, 0, len(weight) - 1))
    places = range(len(weight))
    return sum(padded[..., w : w + x.shape[-2] : stride, :] @ weight[w] for w in places)


@exercise.alternative
def state_by_state(x, weight, stride):
    found = []
    for start in range(0, x.shape[-2], stride):
        tokens = x[..., start : start + len(weight), :]
        found.append(torch.einsum("...wd,wdo->...o", tokens, weight[: tokens.shape[-2]]))
    return torch.stack(found, dim=-2)
