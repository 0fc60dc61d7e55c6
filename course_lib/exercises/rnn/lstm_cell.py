"""A memory that is only added to: gates decide what it forgets, takes in and shows."""

import torch
from einops import rearrange
from torch.nn import functional as F

from course_lib.before_attention import lstm_cell
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import RECURRENT

exercise = Exercise(
    reference=lstm_cell,
    lesson="01_gates",
    title="Gates guard the memory",
    minutes=15,
    difficulty=3,
    hints=(
        "The last axis of w_x holds four matrices side by side, each d_h wide. What does one "
        "product with all of it give, and where do you cut? The docstring says in which order "
        "the four come.",
        "Three of the four say how much, from nothing to all; one says what, and may be negative. "
        "Which function suits which?",
        "The new h shows a part of a memory: of the old one, or of the one just made?",
    ),
    clauses={
        "the gates are in torch's order": "forget_gate_first",
    },
    forbidden=RECURRENT,
)


def step(draw: Draw, *batch: int, d_in: int, d_h: int):
    return (
        draw.normal(*batch, d_in),
        draw.normal(*batch, d_h),
        draw.normal(*batch, d_h),
        draw.normal(d_in, 4 * d_h),
        draw.normal(d_h, 4 * d_h),
        draw.normal(4 * d_h),
    )


@exercise.cases
def cases(draw: Draw):
    yield "one word, a state of one number", step(draw, d_in=2, d_h=1)
    yield "one word", step(draw, d_in=3, d_h=2)
    yield "a batch of words", step(draw, 4, d_in=2, d_h=3)
    yield "a batch of one", step(draw, 1, d_in=4, d_h=3)
    yield "two batch dimensions", step(draw, 3, 2, d_in=4, d_h=5)
    yield "words as large as states", step(draw, 2, d_in=4, d_h=4)


@exercise.edges
def edges(draw: Draw):
    x, h, c, *weights = step(draw, 2, d_in=3, d_h=2)
    yield "the first step, from zeros", (x, 0 * h, 0 * c, *weights)
    x, h, c, w_x, w_h, b = step(draw, 2, d_in=2, d_h=3)
    # one number's input gate, the next one's forget gate and memory, the last one's output gate
    far = torch.tensor([200.0, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 200])
    far_c = torch.tensor([0.0, 100, 0])
    yield "gates and a memory far from zero", (x, h, c + far_c, w_x, w_h, b + far)


def with_gates(draw: Draw, i: float = 0.0, f: float = 0.0, o: float = 0.0):
    """Draw a step whose biases hold gates open (50) or shut (-50)."""
    *inputs, b = step(draw, 1, d_in=2, d_h=3)
    return *inputs, b + torch.tensor([i, f, 0.0, o]).repeat_interleave(3)


@exercise.requires("forgetting nothing and taking nothing in, the memory stays as it was", 2)
def kept(answer, draw: Draw):
    inputs = with_gates(draw, i=-50.0, f=50.0)
    exact = [x.double() for x in inputs]
    return torch.allclose(answer(*inputs)[1], inputs[2], atol=1e-5) and torch.allclose(
        answer(*exact)[1], exact[2], rtol=0, atol=1e-9
    )


@exercise.requires("with the output gate open, h is the tanh of the new memory")
def shown(answer, draw: Draw):
    h, c = answer(*with_gates(draw, o=50.0))
    return c.abs().max() > 0 and torch.allclose(h, torch.tanh(c), atol=1e-5)


def reordered(x, h, c, w_x, w_h, b, order):
    """Run the reference on gates that stand in another order."""
    parts = [torch.cat([w.chunk(4, dim=-1)[gate] for gate in order], dim=-1) for w in (w_x, w_h, b)]
    return lstm_cell(x, h, c, *parts)


def gates_of(x, h, w_x, w_h, b):
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    return i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()


@exercise.mistake
def forget_gate_first(x, h, c, w_x, w_h, b):
    """Input and forget gate have changed places: the memory forgets where it should take in. In
    which order do the gates stand along the last axis?"""
    return reordered(x, h, c, w_x, w_h, b, order=(1, 0, 2, 3))


@exercise.mistake
def output_gate_third(x, h, c, w_x, w_h, b):
    """Candidate and output gate have changed places: the third quarter was taken for a gate, and
    the fourth for what is written."""
    return reordered(x, h, c, w_x, w_h, b, order=(0, 1, 3, 2))


@exercise.mistake
def order_of_tensorflow(x, h, c, w_x, w_h, b):
    """The gates were read in the order i g f o, which is that of TensorFlow and Keras. In which
    order does the docstring say that they stand?"""
    return reordered(x, h, c, w_x, w_h, b, order=(0, 2, 1, 3))


@exercise.mistake
def gates_interleaved(x, h, c, w_x, w_h, b):
    """The gates were cut as if their entries took turns: i f g o, i f g o, ... Each gate's d_h
    numbers lie together. Which of the two varies slower along the axis?"""
    parts = [rearrange(w, "... (d_h gate) -> ... (gate d_h)", gate=4) for w in (w_x, w_h, b)]
    return lstm_cell(x, h, c, *parts)


@exercise.mistake(raises=(RuntimeError, ValueError))
def cut_along_the_batch(x, h, c, w_x, w_h, b):
    """Right for one word, not for a batch: `chunk` and `split` cut the first axis unless they are
    told which. On which axis do the gates stand?"""
    i, f, g, o = torch.chunk(x @ w_x + h @ w_h + b, 4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@exercise.mistake
def candidate_through_a_sigmoid(x, h, c, w_x, w_h, b):
    """All four parts went through a sigmoid, so nothing negative can ever be written. Which of the
    four is no gate?"""
    i, f, g, o = (x @ w_x + h @ w_h + b).sigmoid().chunk(4, dim=-1)
    c = f * c + i * g
    return o * c.tanh(), c


@exercise.mistake
def candidate_without_tanh(x, h, c, w_x, w_h, b):
    """The candidate was written as it came, without its tanh, so one word can write more than 1
    into the memory."""
    i, f, _, o = gates_of(x, h, w_x, w_h, b)
    c = f * c + i * (x @ w_x + h @ w_h + b).chunk(4, dim=-1)[2]
    return o * c.tanh(), c


@exercise.mistake
def shown_without_tanh(x, h, c, w_x, w_h, b):
    """The memory is right, but it was shown without its tanh, so h grows as the memory does. What
    does the formula do to c' before it is shown?"""
    _, c = lstm_cell(x, h, c, w_x, w_h, b)
    return gates_of(x, h, w_x, w_h, b)[3] * c, c


@exercise.mistake
def old_memory_shown(x, h, c, w_x, w_h, b):
    """The memory is right, but h shows the old one: what this word has just written is not yet in
    it. Which line comes first?"""
    o = gates_of(x, h, w_x, w_h, b)[3]
    return o * c.tanh(), lstm_cell(x, h, c, w_x, w_h, b)[1]


@exercise.mistake
def forget_gate_unused(x, h, c, w_x, w_h, b):
    """Nothing is ever forgotten, as in the LSTM of 1997: the old memory was added whole. What may
    the forget gate do to it?"""
    i, _, g, o = gates_of(x, h, w_x, w_h, b)
    c = c + i * g
    return o * c.tanh(), c


@exercise.mistake
def gates_tied(x, h, c, w_x, w_h, b):
    """What is taken in was tied to what is forgotten: one gate and its rest to 1. Here the two
    decide apart, each with weights of its own."""
    _, f, g, o = gates_of(x, h, w_x, w_h, b)
    c = f * c + (1 - f) * g
    return o * c.tanh(), c


@exercise.mistake
def bias_forgotten(x, h, c, w_x, w_h, b):
    """The bias plays no part. With a word and a state of zeros, all gates are half open; what
    should b change about that?"""
    return lstm_cell(x, h, c, w_x, w_h, torch.zeros_like(b))


@exercise.mistake
def returned_the_other_way_round(x, h, c, w_x, w_h, b):
    """Right numbers in the wrong order: the memory came back first. Which of the two comes first in
    the arguments, and in the docstring?"""
    h, c = lstm_cell(x, h, c, w_x, w_h, b)
    return c, h


@exercise.mistake
def memory_not_returned(x, h, c, w_x, w_h, b):
    """Only h came back. What would the next step do for its memory?"""
    return lstm_cell(x, h, c, w_x, w_h, b)[0]


@exercise.mistake
def forget_bias_of_one(x, h, c, w_x, w_h, b):
    """A 1 was added to the forget gate before its sigmoid, as TensorFlow does in each step. Here b
    already holds every bias: where would a network that should remember at first get its 1?"""
    d_h = h.shape[-1]
    return lstm_cell(x, h, c, w_x, w_h, b + F.pad(b.new_ones(d_h), (d_h, 2 * d_h)))


@exercise.mistake
def forgotten_as_taken_in(x, h, c, w_x, w_h, b):
    """What is forgotten was tied to what is taken in, as in a GRU: the old memory was multiplied by
    1 - sigma(i), and f plays no part. Here the two decide apart."""
    i, _, g, o = gates_of(x, h, w_x, w_h, b)
    c = (1 - i) * c + i * g
    return o * c.tanh(), c


@exercise.mistake
def sigma_by_exponentials(x, h, c, w_x, w_h, b):
    """A gate far above zero gives NaN, where it is open: e^a is infinite there, and infinity
    divided by infinity is no number. Which function of torch knows that?"""
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    i, f, o = (a.exp() / (1 + a.exp()) for a in (i, f, o))
    c = f * c + i * g.tanh()
    return o * c.tanh(), c


@exercise.alternative
def gate_by_gate(x, h, c, w_x, w_h, b):
    def gate(number):
        part = slice(number * h.shape[-1], (number + 1) * h.shape[-1])
        return x @ w_x[:, part] + h @ w_h[:, part] + b[part]

    memory = torch.sigmoid(gate(1)) * c + torch.sigmoid(gate(0)) * torch.tanh(gate(2))
    return torch.sigmoid(gate(3)) * torch.tanh(memory), memory


@exercise.alternative
def side_by_side(x, h, c, w_x, w_h, b):
    total = torch.matmul(torch.cat([x, h], dim=-1), torch.cat([w_x, w_h])) + b
    i, f, g, o = total.unflatten(-1, (4, -1)).unbind(-2)
    memory = torch.addcmul(f.sigmoid() * c, i.sigmoid(), g.tanh())
    return o.sigmoid() * memory.tanh(), memory
