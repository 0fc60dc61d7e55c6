"""A recurrence with gates that depend on what is read: what to keep, what to write, what to say."""

import torch

from course_lib.beyond import parallel_scan, selective
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=selective,
    lesson="15_scan",
    title="A state that chooses what it keeps",
    minutes=12,
    difficulty=3,
    hints=(
        "The state is a matrix for each token: d channels with s numbers each. Which of the five "
        "arguments have d numbers a token, which have s, and which have no token at all?",
        "The recurrence is a scan: what is its decay, and what is added? Both have the axes "
        "n, d and s.",
        "A scan knows two axes, tokens and numbers. How do d and s become one axis, and two again "
        "afterwards? At last each token reads its own state: over which axis is that a sum?",
    ),
    clauses={
        "says how much it lets in and how much it forgets": "delta_for_the_decay_alone",
        "where y_t is read": "read_by_b",
        "a is negative": GIVEN,
        "Time and memory": GIVEN,
        "log n times the work": GIVEN,
    },
    # a has two axes: the last one is the second one
    equivalent=("-1 -> 1",),
)


def drawn(draw: Draw, *batch: int, n: int, d: int, s: int) -> tuple:
    return (
        draw.normal(*batch, n, d),
        draw.normal(*batch, n, d).abs(),
        -draw.normal(d, s).abs() - 0.5,
        draw.normal(*batch, n, s),
        draw.normal(*batch, n, s),
    )


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", drawn(draw, n=2, d=3, s=4)
    yield "five tokens", drawn(draw, n=5, d=2, s=3)
    yield "as many tokens as channels", drawn(draw, n=3, d=3, s=2)
    yield "channels of one number", drawn(draw, n=4, d=3, s=1)
    yield "as many channels as numbers in each", drawn(draw, n=6, d=2, s=2)
    yield "one token", drawn(draw, n=1, d=2, s=3)
    yield "a batch of texts", drawn(draw, 3, n=4, d=2, s=5)
    yield "two batch dimensions", drawn(draw, 2, 3, n=4, d=5, s=2)


@exercise.edges
def edges(draw: Draw):
    x, delta, *others = drawn(draw, n=40, d=2, s=2)
    yield "a long text, and small deltas", (x, delta / 9, *others)


@exercise.requires("a token whose delta is 0 writes nothing and forgets nothing")
def closed_gate(answer, draw: Draw):
    x, delta, a, b, c = drawn(draw, n=6, d=3, s=4)
    delta[3] = 0
    rest = torch.tensor([0, 1, 2, 4, 5])
    found, without = answer(x, delta, a, b, c), answer(x[rest], delta[rest], a, b[rest], c[rest])
    return found.std() > 0 and torch.allclose(found[rest], without, atol=1e-5)


@exercise.requires("a very large delta forgets all that came before")
def open_gate(answer, draw: Draw):
    x, delta, a, b, c = drawn(draw, n=6, d=3, s=4)
    delta[3] = 1000
    found, tail = answer(x, delta, a, b, c), answer(x[3:], delta[3:], a, b[3:], c[3:])
    return found.std() > 0 and torch.allclose(found[3:], tail, rtol=1e-4, atol=1e-4)


def run(x, delta, a, b, c, step=None, decay=None, read=None, early=False):
    """Run token by token: a state of d x s numbers."""
    state = torch.zeros_like(x[..., 0, :, None] * a)
    found = []
    for t in range(x.shape[-2]):
        gate = delta[..., t, :, None]
        kept = decay(gate, a) if decay else (gate * a).exp()
        new = (gate * a).expm1() / a * b[..., t, None, :] * x[..., t, :, None]
        before = state
        state = kept * state + (step(gate, b[..., t, None, :], x[..., t, :, None]) if step else new)
        asked = before if early else state
        found.append((asked * (c if read is None else read)[..., t, None, :]).sum(-1))
    return torch.stack(found, dim=-2)


@exercise.mistake
def delta_for_the_decay_alone(x, delta, a, b, c):
    """delta was left out where something is written: it opens the gate for what comes in, as it
    says how much is forgotten."""
    return run(x, delta, a, b, c, step=lambda gate, b, x: b * x)


@exercise.mistake
def the_same_decay(x, delta, a, b, c):
    """The decay is exp(a) at every token, so the state forgets at the same pace whatever is read.
    What makes the state space selective?"""
    return run(x, delta, a, b, c, decay=lambda gate, a: a.exp().expand_as(gate * a))


@exercise.mistake
def the_simpler_step(x, delta, a, b, c):
    """What enters is delta b x, the simpler step that the authors' code takes. It is near the
    zero-order hold for a small delta; for a large one the docstring's factor stays below 1 / |a|,
    and delta does not."""
    return run(x, delta, a, b, c, step=lambda gate, b, x: gate * b * x)


@exercise.mistake
def wrong_side_of_one(x, delta, a, b, c):
    """What enters has the wrong sign: a is negative, and so is exp(delta a) - 1. Their quotient is
    positive."""
    states, state = [], torch.zeros_like(x[..., 0, :, None] * a)
    for t in range(x.shape[-2]):
        exponent = delta[..., t, :, None] * a
        held = exponent.expm1() / -a * b[..., t, None, :] * x[..., t, :, None]
        state = exponent.exp() * state + held
        states.append((state * c[..., t, None, :]).sum(-1))
    return torch.stack(states, dim=-2)


@exercise.mistake
def no_exponential(x, delta, a, b, c):
    """The decay is delta times a, without the exponential: a is negative, and the state changes its
    sign at every token."""
    return run(x, delta, a, b, c, decay=lambda gate, a: gate * a)


@exercise.mistake
def grows(x, delta, a, b, c):
    """The exponential has the wrong sign: a is negative, and a state that grows at every token is
    soon infinite."""
    return run(x, delta, a, b, c, decay=lambda gate, a: (-gate * a).exp())


@exercise.mistake
def read_by_b(x, delta, a, b, c):
    """The state was read by b. b says where a token is written, c where it reads."""
    return run(x, delta, a, b, c, read=b)


@exercise.mistake
def read_too_early(x, delta, a, b, c):
    """Each token reads the state before it has written its own part, so the first one reads
    nothing. Which state is h_t, the old one or the new?"""
    return run(x, delta, a, b, c, early=True)


@exercise.mistake
def exchanged(x, delta, a, b, c):
    """b and c are exchanged: the one writes, the other reads."""
    return run(x, delta, a, c, b)


@exercise.mistake
def closed_form(x, delta, a, b, c):
    """The decays of all tokens were multiplied, and what is written was divided by these products.
    They are soon 0: use a scan, which never divides."""
    kept = (delta[..., None] * a).exp()
    written = (kept - 1) / a * x[..., None] * b[..., None, :]
    products = kept.cumprod(-3)
    states = products * (written / products).cumsum(-3)
    return (states * c[..., None, :]).sum(-1)


@exercise.mistake
def no_memory(x, delta, a, b, c):
    """There is no recurrence: each token reads what it has written itself, and nothing from
    before."""
    written = (delta[..., None] * a).expm1() / a * x[..., None] * b[..., None, :]
    return (written * c[..., None, :]).sum(-1)


@exercise.mistake
def averaged(x, delta, a, b, c):
    """The states were averaged in place of summed: y_t is the dot product of c_t and each
    channel."""
    return run(x, delta, a, b, c) / a.shape[-1]


@exercise.alternative
def token_by_token(x, delta, a, b, c):
    return run(x, delta, a, b, c)


@exercise.alternative
def channel_by_channel(x, delta, a, b, c):
    found = []
    for channel in range(x.shape[-1]):
        kept = (delta[..., channel, None] * a[channel]).exp()
        held = (kept - 1) / a[channel] * x[..., channel, None] * b
        states = parallel_scan(kept, held)
        found.append((states * c).sum(-1))
    return torch.stack(found, dim=-1)
