"""One gate mixes old and new, another says how much of the past the new one may use."""

import torch
from einops import rearrange

from course_lib.before_attention import gru_cell
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import RECURRENT

exercise = Exercise(
    reference=gru_cell,
    lesson="01",
    title="One state and two gates",
    minutes=12,
    difficulty=3,
    hints=(
        "Token and state are projected apart, each into three parts: reset, update, new. Two pairs "
        "of these parts are added straight away. What comes first for the third pair?",
        "The reset gate decides how much of the past reaches the proposal n. Which of the six "
        "parts holds the past for n?",
        "The new state is a mixture with the shares z and 1 - z. If z is 1, what does the formula "
        "keep?",
    ),
    forbidden=RECURRENT,
)


def step(draw: Draw, *batch: int, d_in: int, d_h: int):
    return (
        draw.normal(*batch, d_in),
        draw.normal(*batch, d_h),
        draw.normal(d_in, 3 * d_h),
        draw.normal(d_h, 3 * d_h),
        draw.normal(3 * d_h),
        draw.normal(3 * d_h),
    )


@exercise.cases
def cases(draw: Draw):
    yield "one word, a state of one number", step(draw, d_in=2, d_h=1)
    yield "one word", step(draw, d_in=3, d_h=2)
    yield "a batch of words", step(draw, 4, d_in=2, d_h=5)
    yield "a batch of one", step(draw, 1, d_in=4, d_h=3)
    yield "two batch dimensions", step(draw, 2, 3, d_in=4, d_h=5)
    yield "words as large as states", step(draw, 2, d_in=4, d_h=4)


@exercise.edges
def edges(draw: Draw):
    x, h, *weights = step(draw, 2, d_in=3, d_h=2)
    yield "a state of zeros", (x, 0 * h, *weights)
    *inputs, b_x, b_h = step(draw, 2, d_in=2, d_h=3)
    # one number's reset gate, the next one's update gate, the last one's proposal
    far = torch.tensor([200.0, 0, 0, 0, 200, 0, 0, 0, 100])
    yield "gates and sums far from zero", (*inputs, b_x + far, b_h)


def with_gates(draw: Draw, r: float = 0.0, z: float = 0.0):
    """Draw a step whose biases hold gates at 1 (50) or at 0 (-50)."""
    *inputs, b_x, b_h = step(draw, 1, d_in=2, d_h=3)
    return *inputs, b_x + torch.tensor([r, z, 0.0]).repeat_interleave(3), b_h


@exercise.requires("with the update gate at 1, the state stays as it was", 2)
def kept(answer, draw: Draw):
    inputs = with_gates(draw, z=50.0)
    exact = [x.double() for x in inputs]
    return torch.allclose(answer(*inputs), inputs[1], atol=1e-5) and torch.allclose(
        answer(*exact), exact[1], rtol=0, atol=1e-9
    )


@exercise.requires("with both gates at 0, the new state knows nothing of the old one")
def past_shut_out(answer, draw: Draw):
    x, h, *weights = with_gates(draw, r=-50.0, z=-50.0)
    state = answer(x, h, *weights)
    return state.abs().max() > 0 and torch.allclose(answer(x, -h, *weights), state, atol=1e-5)


def parts(x, w, b):
    return (x @ w + b).chunk(3, dim=-1)


def gates_of(x, h, w_x, w_h, b_x, b_h):
    x_r, x_z, _ = parts(x, w_x, b_x)
    h_r, h_z, _ = parts(h, w_h, b_h)
    return torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)


def proposing(x, h, w_x, w_h, b_x, b_h, propose):
    """Take the reference's step with another proposal, made of x_n, h_n and r."""
    r, z = gates_of(x, h, w_x, w_h, b_x, b_h)
    n = propose(parts(x, w_x, b_x)[2], parts(h, w_h, b_h)[2], r)
    return (1 - z) * n + z * h


@exercise.mistake
def mixed_the_other_way_round(x, h, w_x, w_h, b_x, b_h):
    """The mixture is the other way round, as in Chung et al. 2014: here z is the share of the old
    state. Which of the two does your z multiply?"""
    r, z = gates_of(x, h, w_x, w_h, b_x, b_h)
    n = torch.tanh(parts(x, w_x, b_x)[2] + r * parts(h, w_h, b_h)[2])
    return z * n + (1 - z) * h


@exercise.mistake
def update_gate_first(x, h, w_x, w_h, b_x, b_h):
    """Reset and update have changed places: the first third was taken for z. In which order do the
    three stand along the last axis?"""

    def swapped(w):
        r, z, n = w.chunk(3, dim=-1)
        return torch.cat([z, r, n], dim=-1)

    return gru_cell(x, h, *map(swapped, (w_x, w_h, b_x, b_h)))


@exercise.mistake
def new_before_update(x, h, w_x, w_h, b_x, b_h):
    """Update and new have changed places: the parts were read in the order r n z. In which order do
    the three stand along the last axis?"""

    def swapped(w):
        r, z, n = w.chunk(3, dim=-1)
        return torch.cat([r, n, z], dim=-1)

    return gru_cell(x, h, *map(swapped, (w_x, w_h, b_x, b_h)))


@exercise.mistake
def reset_before_the_product(x, h, w_x, w_h, b_x, b_h):
    """The state was reset before the product, as in Cho et al. 2014. Here the gate acts on what the
    product gives: what is the difference when r is not the same everywhere?"""
    r, _ = gates_of(x, h, w_x, w_h, b_x, b_h)
    h_n = parts(r * h, w_h, b_h)[2]
    return proposing(x, h, w_x, w_h, b_x, b_h, lambda x_n, _, r: torch.tanh(x_n + h_n))


@exercise.mistake
def reset_without_the_bias(x, h, w_x, w_h, b_x, b_h):
    """The recurrent bias of n escaped the reset gate: it was added to the word's part. Does the
    gate act on the recurrent term before its bias or after it?"""
    b = b_h.chunk(3)[2]
    return proposing(
        x, h, w_x, w_h, b_x, b_h, lambda x_n, h_n, r: torch.tanh(x_n + b + r * (h_n - b))
    )


@exercise.mistake
def reset_gate_unused(x, h, w_x, w_h, b_x, b_h):
    """The reset gate plays no part: the proposal uses all of the past. How much of it should reach
    n when r is 0?"""
    return proposing(x, h, w_x, w_h, b_x, b_h, lambda x_n, h_n, r: torch.tanh(x_n + h_n))


@exercise.mistake
def word_reset_too(x, h, w_x, w_h, b_x, b_h):
    """The reset gate held back the word as well as the past. What should n know of the word when r
    is 0?"""
    return proposing(x, h, w_x, w_h, b_x, b_h, lambda x_n, h_n, r: torch.tanh(r * (x_n + h_n)))


@exercise.mistake
def proposal_through_a_sigmoid(x, h, w_x, w_h, b_x, b_h):
    """The proposal went through a sigmoid like the gates, so no entry of the state can be pushed
    below zero. Is n a share or a content?"""
    return proposing(x, h, w_x, w_h, b_x, b_h, lambda x_n, h_n, r: torch.sigmoid(x_n + r * h_n))


@exercise.mistake
def proposal_not_squashed(x, h, w_x, w_h, b_x, b_h):
    """The proposal was not squashed: without its tanh, states can grow from step to step."""
    return proposing(x, h, w_x, w_h, b_x, b_h, lambda x_n, h_n, r: x_n + r * h_n)


@exercise.mistake
def nothing_mixed(x, h, w_x, w_h, b_x, b_h):
    """The new state is the proposal alone: z was computed, and nothing was mixed. How should an old
    state survive many steps?"""
    r, _ = gates_of(x, h, w_x, w_h, b_x, b_h)
    return torch.tanh(parts(x, w_x, b_x)[2] + r * parts(h, w_h, b_h)[2])


@exercise.mistake
def recurrent_bias_forgotten(x, h, w_x, w_h, b_x, b_h):
    """b_h plays no part: one of the two biases was left out. In a plain cell one bias would do;
    what does the reset gate do to b_h and not to b_x?"""
    return gru_cell(x, h, w_x, w_h, b_x, torch.zeros_like(b_h))


@exercise.mistake
def parts_interleaved(x, h, w_x, w_h, b_x, b_h):
    """The three parts were cut as if their entries took turns: r z n, r z n, ... Each part's d_h
    numbers lie together. Which of the two varies slower along the axis?"""

    def sorted_out(w):
        return rearrange(w, "... (d_h gate) -> ... (gate d_h)", gate=3)

    return gru_cell(x, h, *map(sorted_out, (w_x, w_h, b_x, b_h)))


@exercise.mistake(raises=ValueError)
def cut_along_the_batch(x, h, w_x, w_h, b_x, b_h):
    """Right for one word, not for a batch: `chunk` and `split` cut the first axis unless they are
    told which. On which axis do the parts stand?"""
    x_r, x_z, x_n = torch.chunk(x @ w_x + b_x, 3)
    h_r, h_z, h_n = torch.chunk(h @ w_h + b_h, 3)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return (1 - z) * n + z * h


@exercise.mistake
def away_from_the_old_state(x, h, w_x, w_h, b_x, b_h):
    """As z grows, the new state moves away from the old one: there is a sign too many between n and
    h, as in n + z (n - h). With z = 1, what should be left?"""
    r, z = gates_of(x, h, w_x, w_h, b_x, b_h)
    n = torch.tanh(parts(x, w_x, b_x)[2] + r * parts(h, w_h, b_h)[2])
    return n + z * (n - h)


@exercise.mistake
def gates_through_a_tanh(x, h, w_x, w_h, b_x, b_h):
    """The gates went through a tanh, from -1 to 1. A gate says how much passes: which function
    gives numbers from 0 to 1?"""
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r, z = torch.tanh(x_r + h_r), torch.tanh(x_z + h_z)
    return (1 - z) * torch.tanh(x_n + r * h_n) + z * h


@exercise.mistake
def sigma_by_exponentials(x, h, w_x, w_h, b_x, b_h):
    """A gate far above zero gives NaN, where it is 1: e^a is infinite there, and infinity divided
    by infinity is no number. Which function of torch knows that?"""
    (x_r, x_z, x_n), (h_r, h_z, h_n) = parts(x, w_x, b_x), parts(h, w_h, b_h)
    r, z = (a.exp() / (1 + a.exp()) for a in (x_r + h_r, x_z + h_z))
    return (1 - z) * torch.tanh(x_n + r * h_n) + z * h


@exercise.alternative
def gate_by_gate(x, h, w_x, w_h, b_x, b_h):
    def part(number):
        place = slice(number * h.shape[-1], (number + 1) * h.shape[-1])
        return x @ w_x[:, place] + b_x[place], h @ w_h[:, place] + b_h[place]

    (x_r, h_r), (x_z, h_z), (x_n, h_n) = part(0), part(1), part(2)
    proposal = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return torch.lerp(proposal, h, torch.sigmoid(x_z + h_z))


@exercise.alternative
def gates_in_one_product(x, h, w_x, w_h, b_x, b_h):
    d_h = h.shape[-1]
    word = torch.einsum("...i,ij->...j", x, w_x) + b_x
    past = torch.einsum("...i,ij->...j", h, w_h) + b_h
    gates = (word + past)[..., : 2 * d_h].sigmoid()
    proposal = (word[..., 2 * d_h :] + gates[..., :d_h] * past[..., 2 * d_h :]).tanh()
    return proposal + gates[..., d_h:] * (h - proposal)
