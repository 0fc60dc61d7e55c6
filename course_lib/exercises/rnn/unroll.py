"""A recurrent network reads a sentence: one step after another, each from the state before."""

import torch

from course_lib.before_attention import rnn_cell, unroll
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=unroll,
    lesson="01",
    title="Token after token",
    minutes=8,
    difficulty=2,
    hints=(
        "You have built one step. What does the second step need that only the first can give?",
        "In xs of shape (n, d_in), which axis are the tokens on? And in (batch, n, d_in): does a "
        "plain `for` loop still meet tokens?",
        "After n steps there are n states of one shape. Which of torch's ways to join tensors "
        "makes a new axis, and where does the axis of the tokens belong?",
    ),
    clauses={
        "The initial state h is not among": "initial_state_too",
        "Step t cannot begin": GIVEN,
    },
    forbidden=("torch.rnn_tanh", "torch.nn.RNN"),
)


def sentence(draw: Draw, *batch: int, n: int, d_in: int, d_h: int):
    return (
        draw.normal(*batch, n, d_in),
        draw.normal(*batch, d_h),
        draw.normal(d_in, d_h),
        draw.normal(d_h, d_h),
        draw.normal(d_h),
    )


@exercise.cases
def cases(draw: Draw):
    yield "one word", sentence(draw, n=1, d_in=3, d_h=2)
    yield "two words", sentence(draw, n=2, d_in=3, d_h=4)
    yield "five words", sentence(draw, n=5, d_in=2, d_h=3)
    yield "a batch of sentences", sentence(draw, 2, n=4, d_in=3, d_h=5)
    yield "a batch of one", sentence(draw, 1, n=3, d_in=4, d_h=2)
    yield "two batch dimensions", sentence(draw, 3, 2, n=4, d_in=5, d_h=6)
    yield "as many words as each has numbers", sentence(draw, n=3, d_in=3, d_h=5)


@exercise.edges
def edges(draw: Draw):
    xs, h, *weights = sentence(draw, n=3, d_in=2, d_h=4)
    yield "a first state of zeros", (xs, 0 * h, *weights)
    *inputs, b = sentence(draw, n=3, d_in=2, d_h=3)
    yield "sums far from zero", (*inputs, b + torch.tensor([100.0, -100.0, 0.0]))
    xs, h, w_x, w_h, b = sentence(draw, n=40, d_in=2, d_h=3)
    yield "forty words", (xs, h, w_x, 0.3 * w_h, b)


@exercise.requires("reading on from where one stopped gives the same states as reading at once", 2)
def resumed(answer, draw: Draw):
    xs, h, *weights = sentence(draw, 3, n=6, d_in=2, d_h=4)
    states = answer(xs, h, *weights)
    first = answer(xs[:, :2], h, *weights)
    rest = answer(xs[:, 2:], first[:, -1], *weights)
    return states.abs().max() > 0 and torch.allclose(torch.cat([first, rest], 1), states, atol=1e-5)


@exercise.requires("a word changes its own state and later ones, and none before it")
def causal(answer, draw: Draw):
    xs, *rest = sentence(draw, n=5, d_in=3, d_h=4)
    other = torch.cat([xs[:3], -xs[3:4], xs[4:]])
    moved = (answer(other, *rest) - answer(xs, *rest)).abs().amax(-1) > 1e-6
    return moved.tolist() == [False, False, False, True, True]


@exercise.mistake
def initial_state_too(xs, h, w_x, w_h, b):
    """There is a state too many: the initial one came back with the others. Which state exists
    before any word has been read?"""
    return torch.cat([h.unsqueeze(-2), unroll(xs, h, w_x, w_h, b)], dim=-2)


@exercise.mistake
def kept_before_the_step(xs, h, w_x, w_h, b):
    """As many states as words, but each stands one place late: the first is the initial state and
    the last is missing. Was the state kept before the step or after it?"""
    return initial_state_too(xs, h, w_x, w_h, b)[..., :-1, :]


@exercise.mistake(raises=RuntimeError)
def last_state_only(xs, h, w_x, w_h, b):
    """Only the last state came back. The step is right; what happened to the states on the way
    there?"""
    return unroll(xs, h, w_x, w_h, b)[..., -1, :]


@exercise.mistake
def not_carried_on(xs, h, w_x, w_h, b):
    """Every word met the initial state, as if each were the first. Which variable should have
    changed from one step to the next?"""
    return torch.stack([rnn_cell(x, h, w_x, w_h, b) for x in xs.unbind(-2)], dim=-2)


@exercise.mistake
def started_from_zeros(xs, h, w_x, w_h, b):
    """The initial state plays no part: the network always starts from zeros, whatever it was
    given."""
    return unroll(xs, torch.zeros_like(h), w_x, w_h, b)


@exercise.mistake
def backwards(xs, h, w_x, w_h, b):
    """The sentence was read from its end. Which state should have seen the first word alone, and
    which of yours has?"""
    return unroll(xs.flip(-2), h, w_x, w_h, b)


@exercise.mistake(raises=RuntimeError)
def looped_over_sentences(xs, h, w_x, w_h, b):
    """Right for one sentence, not for a batch: a `for` loop over a tensor takes its first axis,
    which in a batch is the sentences. On which axis are the words always?"""
    states = []
    for x in xs:
        h = rnn_cell(x, h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states)


@exercise.mistake(raises=RuntimeError)
def words_on_axis_one(xs, h, w_x, w_h, b):
    """Right for one batch dimension, not without one: the words were counted as axis 1 from the
    front. From which end do they always stand in the same place?"""
    states = []
    for t in range(xs.shape[1]):
        h = rnn_cell(xs[:, t], h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


@exercise.mistake(raises=(IndexError, RuntimeError))
def words_between_two_axes(xs, h, w_x, w_h, b):
    """Right for one batch dimension, not without one: `[:, t, :]` needs exactly three axes. How can
    the words' axis be named when nobody knows how many stand before it?"""
    states = []
    for t in range(xs.shape[1]):
        h = rnn_cell(xs[:, t, :], h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


@exercise.mistake(raises=ValueError)
def three_sizes_unpacked(xs, h, w_x, w_h, b):
    """Right for one batch dimension, not without one: xs was taken to have three sizes. A sentence
    may come alone, or under two batch dimensions: which of its sizes do you need?"""
    _, n, _ = xs.shape
    states = []
    for t in range(n):
        h = rnn_cell(xs[:, t], h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


@exercise.mistake(raises=RuntimeError)
def stacked_in_front(xs, h, w_x, w_h, b):
    """The steps are right, but in a batch the states lie with the words' axis in front of the
    batch. Where were the words in xs, and where does `torch.stack` put a new axis by itself?"""
    return unroll(xs, h, w_x, w_h, b).movedim(-2, 0)


@exercise.mistake(raises=RuntimeError)
def end_to_end(xs, h, w_x, w_h, b):
    """All states lie end to end in one long row. Joining along an axis that is there already makes
    no axis of words: what does?"""
    return unroll(xs, h, w_x, w_h, b).flatten(-2)


@exercise.mistake
def written_over(xs, h, w_x, w_h, b):
    """Every row holds the last state: one tensor was written over at each step and kept n times.
    How many tensors must there be at the end?"""
    states = []
    for x in xs.unbind(-2):
        h[...] = rnn_cell(x, h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states, dim=-2)


@exercise.mistake
def detached_at_each_step(xs, h, w_x, w_h, b):
    """The states are right, but no gradient goes back further than one step: `detach()` and `.data`
    cut each state off from the words before. Which words could the network learn from?"""
    states = []
    for x in xs.unbind(-2):
        states.append(rnn_cell(x, h, w_x, w_h, b))
        h = states[-1].detach()
    return torch.stack(states, dim=-2)


@exercise.mistake
def tanh_by_exponentials(xs, h, w_x, w_h, b):
    """A sum far above zero gives NaN, where its tanh is 1: e^2a is infinite there, and infinity
    divided by infinity is no number. Which function of torch knows that?"""
    states = []
    for x in xs.unbind(-2):
        power = torch.exp(2 * (x @ w_x + h @ w_h + b))
        h = (power - 1) / (power + 1)
        states.append(h)
    return torch.stack(states, dim=-2)


@exercise.mistake
def read_from_the_right(xs, h, w_x, w_h, b):
    """The words were read from the last to the first. Each state should know the words to its
    left: at which end does the loop begin?"""
    return unroll(xs.flip(-2), h, w_x, w_h, b).flip(-2)


@exercise.alternative
def all_words_projected_first(xs, h, w_x, w_h, b):
    words = xs @ w_x + b
    states = xs.new_zeros(*xs.shape[:-1], h.shape[-1])
    for t in range(xs.shape[-2]):
        h = torch.tanh(words[..., t, :] + h @ w_h)
        states[..., t, :] = h
    return states


@exercise.alternative
def recursive(xs, h, w_x, w_h, b):
    first, rest = xs[..., :1, :], xs[..., 1:, :]
    h = torch.tanh(first.squeeze(-2) @ w_x + h @ w_h + b)
    states = h.unsqueeze(-2)
    if rest.shape[-2] == 0:
        return states
    return torch.cat([states, recursive(rest, h, w_x, w_h, b)], dim=-2)
