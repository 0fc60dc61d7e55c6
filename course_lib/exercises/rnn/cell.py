"""One step of a recurrent network: a word and a memory become the next memory."""

import torch

from course_lib.before_attention import rnn_cell
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import RECURRENT

exercise = Exercise(
    reference=rnn_cell,
    lesson="01",
    title="A token and a state become a state",
    minutes=5,
    difficulty=1,
    hints=(
        "The token has d_in numbers and the state d_h. Which matrix turns which of them into d_h "
        "numbers, so that the two can be added?",
        "Rows are tokens: does a weight then stand to the left or to the right of what it "
        "multiplies?",
        "Four things meet in this step, and one function is applied once. To which of them, or "
        "to what made of them?",
    ),
    clauses={
        "b is their sum": "bias_twice",
        "torch's `nn.RNN` has": GIVEN,
    },
    forbidden=RECURRENT,
)


def step(draw: Draw, *batch: int, d_in: int, d_h: int):
    return (
        draw.normal(*batch, d_in),
        draw.normal(*batch, d_h),
        draw.normal(d_in, d_h),
        draw.normal(d_h, d_h),
        draw.normal(d_h),
    )


@exercise.cases
def cases(draw: Draw):
    yield "one word", step(draw, d_in=3, d_h=2)
    yield "a state larger than the word", step(draw, d_in=2, d_h=4)
    yield "words as large as states", step(draw, 2, d_in=3, d_h=3)
    yield "a batch of words", step(draw, 4, d_in=3, d_h=2)
    x, h, *weights = step(draw, d_in=3, d_h=2)
    yield "a state of zeros", (x, 0 * h, *weights)
    yield "a batch of one", step(draw, 1, d_in=2, d_h=3)
    yield "two batch dimensions", step(draw, 3, 2, d_in=4, d_h=5)


@exercise.edges
def edges(draw: Draw):
    x, *rest = step(draw, 2, d_in=3, d_h=4)
    yield "words of zeros", (0 * x, *rest)
    yield "a state of one number", step(draw, 5, d_in=3, d_h=1)


@exercise.requires("no entry of a state is larger than 1, however large the word")
def bounded(answer, draw: Draw):
    x, *rest = step(draw, 4, d_in=3, d_h=5)
    return 0 < answer(1000 * x, *rest).abs().max() <= 1


@exercise.requires("exchanging word and state, with their matrices, changes nothing")
def exchanged(answer, draw: Draw):
    x, h, w_x, w_h, b = step(draw, 4, d_in=3, d_h=3)
    state = answer(x, h, w_x, w_h, b)
    return state.abs().max() > 0 and torch.allclose(answer(h, x, w_h, w_x, b), state, atol=1e-5)


@exercise.mistake
def no_tanh(x, h, w_x, w_h, b):
    """Behaves as if nothing were squashed: without its tanh the step is linear, and a state can
    grow without limit from word to word."""
    return x @ w_x + h @ w_h + b


@exercise.mistake
def squashed_by_a_sigmoid(x, h, w_x, w_h, b):
    """Every entry lies between 0 and 1, so this was squashed by a sigmoid. Between which two
    numbers does a tanh lie?"""
    return torch.sigmoid(x @ w_x + h @ w_h + b)


@exercise.mistake
def bias_forgotten(x, h, w_x, w_h, b):
    """The bias plays no part: a word and a state of zeros give zeros, and should give the tanh of
    something else."""
    return torch.tanh(x @ w_x + h @ w_h)


@exercise.mistake
def bias_twice(x, h, w_x, w_h, b):
    """The bias came in twice, as in torch, which keeps one for the word and one for the state. Here
    b is already their sum."""
    return torch.tanh((x @ w_x + b) + (h @ w_h + b))


@exercise.mistake
def bias_outside(x, h, w_x, w_h, b):
    """The bias was added after the tanh, so states reach beyond 1. What stands inside the brackets
    of the formula?"""
    return torch.tanh(x @ w_x + h @ w_h) + b


@exercise.mistake
def squashed_apart(x, h, w_x, w_h, b):
    """Word and state were squashed one by one and added afterwards, so neither can change what the
    other is worth. How many tanh does the formula have?"""
    return torch.tanh(x @ w_x + b) + torch.tanh(h @ w_h)


@exercise.mistake
def memory_transposed(x, h, w_x, w_h, b):
    """W_h was turned over before it met the state. It is square, so no shape complains: do rows of
    the state meet its rows or its columns?"""
    return torch.tanh(x @ w_x + h @ w_h.mT + b)


@exercise.mistake(raises=RuntimeError)
def both_transposed(x, h, w_x, w_h, b):
    """Both matrices were turned over, which is how torch keeps them. The rows of ours are as many
    as what they meet has numbers: does yours need another turn?"""
    return torch.tanh(x @ w_x.mT + h @ w_h.mT + b)


@exercise.mistake
def memory_forgotten(x, h, w_x, w_h, b):
    """The old state plays no part: whatever the network has read before, the same word gives the
    same state."""
    return torch.tanh(x @ w_x + b)


@exercise.mistake
def side_by_side_in_two_orders(x, h, w_x, w_h, b):
    """Laid side by side, word and state stand in one order and their matrices in the other, so some
    rows of W_x meet entries of the state."""
    return torch.tanh(torch.cat([h, x], dim=-1) @ torch.cat([w_x, w_h]) + b)


@exercise.mistake(raises=RuntimeError)
def matrices_on_the_left(x, h, w_x, w_h, b):
    """The matrices stand on the left: `w_x @ x`. Here tokens are rows, and a row meets its matrix
    from the left: which side of `@` does `x` belong on?"""
    return torch.tanh(w_x @ x + w_h @ h + b)


@exercise.mistake(raises=RuntimeError)
def turned_over_on_the_left(x, h, w_x, w_h, b):
    """The matrices were turned over and stand on the left, which fits one token and no batch: `x @
    w_x` takes any number of rows."""
    return torch.tanh(w_x.mT @ x + w_h.mT @ h + b)


@exercise.mistake(raises=RuntimeError)
def joined_along_the_batch(x, h, w_x, w_h, b):
    """Token and state were joined along their first axis, which is the batch. On which axis do
    their numbers stand?"""
    return torch.tanh(torch.cat([x, h]) @ torch.cat([w_x, w_h]) + b)


@exercise.mistake(raises=RuntimeError)
def matrices_exchanged(x, h, w_x, w_h, b):
    """The two matrices have changed places: w_h met the token, and w_x the state."""
    return torch.tanh(x @ w_h + h @ w_x + b)


@exercise.mistake
def cut_off_by_a_relu(x, h, w_x, w_h, b):
    """No entry is below zero, so this was cut off by a ReLU. What does the formula have instead?"""
    return torch.relu(x @ w_x + h @ w_h + b)


@exercise.mistake
def multiplied(x, h, w_x, w_h, b):
    """What token and state give was multiplied, and the formula adds it: where one of them has a
    zero, the other one is lost."""
    return torch.tanh((x @ w_x) * (h @ w_h) + b)


@exercise.mistake
def matrices_stacked_in_the_other_order(x, h, w_x, w_h, b):
    """Laid side by side, token and state are in one order and their matrices in the other, so some
    entries of the state meet rows of W_x. Which of the two comes first in both?"""
    return torch.tanh(torch.cat([x, h], dim=-1) @ torch.cat([w_h, w_x]) + b)


@exercise.mistake
def only_the_word_squashed(x, h, w_x, w_h, b):
    """The tanh closed too early: it squashed what the word says, and memory and bias were added
    afterwards. Where does its bracket end?"""
    return torch.tanh(x @ w_x) + h @ w_h + b


@exercise.mistake
def only_the_word_and_bias_squashed(x, h, w_x, w_h, b):
    """The tanh closed too early: it squashed what the word and the bias say, and the memory was
    added afterwards, so states reach beyond 1. Where does its bracket end?"""
    return torch.tanh(x @ w_x + b) + h @ w_h


@exercise.mistake
def averaged_with_the_old_state(x, h, w_x, w_h, b):
    """The new state was averaged with the old one. In this cell the old state comes in through w_h
    alone; only a GRU mixes the two, and by a gate."""
    return (h + rnn_cell(x, h, w_x, w_h, b)) / 2


@exercise.alternative
def side_by_side(x, h, w_x, w_h, b):
    return (torch.cat([x, h], dim=-1) @ torch.cat([w_x, w_h], dim=0)).add(b).tanh()


@exercise.alternative
def by_exponentials(x, h, w_x, w_h, b):
    total = torch.nn.functional.linear(x, w_x.mT, b) + torch.nn.functional.linear(h, w_h.mT)
    return 2 * torch.sigmoid(2 * total) - 1
