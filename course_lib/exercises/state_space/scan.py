"""The simplest recurrence: what was there decays, and something new is added."""

import torch

from course_lib.beyond import scan
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=scan,
    lesson="15",
    title="A recurrence without a nonlinearity",
    minutes=5,
    difficulty=1,
    hints=(
        "Before the first token the state is all zeros. What is the first state then?",
        "Which axis are the tokens on, counted from the end? A plain `for` loop over a tensor "
        "walks along its first one.",
        "n states of one shape are to be joined: which function of torch makes a new axis, and "
        "where does it belong?",
    ),
    clauses={
        "The first state is b_1": "begins_with_one",
        "Time O": GIVEN,
    },
    forbidden=("course_lib.beyond.parallel_scan",),
    # zeros are as many, whichever token's numbers they are made for
    equivalent=("0 -> -1",),
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.normal(2, 3), draw.normal(2, 3))
    yield "five tokens", (draw.normal(5, 2), draw.normal(5, 2))
    yield "as many tokens as numbers", (draw.normal(4, 4), draw.normal(4, 4))
    a = torch.rand(6, 3, generator=torch.Generator().manual_seed(draw.number(0, 1000)))
    a[2] = 0
    yield "a decay of 0 forgets everything", (a, draw.normal(6, 3))
    yield "one token", (draw.normal(1, 4), draw.normal(1, 4))
    yield "a batch of texts", (draw.normal(3, 4, 2), draw.normal(3, 4, 2))
    yield "two batch dimensions", (draw.normal(2, 3, 5, 4), draw.normal(2, 3, 5, 4))


@exercise.edges
def edges(draw: Draw):
    yield "a long text", (1 - draw.normal(40, 2).abs() / 9, draw.normal(40, 2))


@exercise.requires("with every decay 1 it is a running sum, with every decay 0 it is what came in")
def ends(answer, draw: Draw):
    b = draw.normal(6, 3)
    total, last = answer(torch.ones_like(b), b), answer(torch.zeros_like(b), b)
    return torch.allclose(total, b.cumsum(0), atol=1e-5) and torch.equal(last, b)


@exercise.requires("a later token changes no earlier state, and all states from its own on")
def hides_the_future(answer, draw: Draw):
    a, b = 0.5 + draw.normal(6, 3).abs(), draw.normal(6, 3)
    changed = b.clone()
    changed[3] += 1
    moved = ((answer(a, changed) - answer(a, b)).abs() > 1e-6).all(-1)
    return moved.tolist() == [False] * 3 + [True] * 3


def steps(a, b, first=0.0, join=lambda a, state, b: a * state + b):
    state, states = torch.full_like(b[..., 0, :], first), []
    for t in range(b.shape[-2]):
        state = join(a[..., t, :], state, b[..., t, :])
        states.append(state)
    return torch.stack(states, dim=-2)


@exercise.mistake
def both_decay(a, b):
    """What is new was multiplied by the decay too. The decay is for the state before."""
    return steps(a, b, join=lambda a, state, b: a * (state + b))


@exercise.mistake
def decays_afterwards(a, b):
    """The decay of the token before was used: a_t belongs to the step that reads b_t. Does it act
    before or after the addition?"""
    state, states = torch.zeros_like(b[..., 0, :]), []
    for t in range(b.shape[-2]):
        states.append(state + b[..., t, :])
        state = a[..., t, :] * states[-1]
    return torch.stack(states, dim=-2)


@exercise.mistake
def no_memory(a, b):
    """The state before is forgotten: what did a_t multiply?"""
    return steps(a, b, join=lambda a, state, b: a * b)


@exercise.mistake
def begins_with_one(a, b):
    """The first state is 1. Before the first token there is nothing: zeros."""
    return steps(a, b, first=1.0)


@exercise.mistake
def last_alone(a, b):
    """Only the last state was returned. Keep the state after every token."""
    return steps(a, b)[..., -1, :]


@exercise.mistake
def states_before(a, b):
    """The states are those before each token. The first of them is zeros, and the last token has
    changed none."""
    states = steps(a, b)
    return torch.cat([torch.zeros_like(states[..., :1, :]), states[..., :-1, :]], dim=-2)


@exercise.mistake
def along_the_first_axis(a, b):
    """Right for one text, not for a batch: the loop went along the first axis, and tokens are on
    the last but one."""
    state, states = torch.zeros_like(b[0]), []
    for decay, new in zip(a, b, strict=True):
        state = decay * state + new
        states.append(state)
    return torch.stack(states)


@exercise.mistake
def closed_form(a, b):
    """In closed form, h_t is the product of all decays times a sum of b_t divided by such products.
    A decay of 0 makes this 0 divided by 0, and a long text makes the products too small for a
    float."""
    products = a.cumprod(-2)
    return products * (b / products).cumsum(-2)


@exercise.alternative
def token_by_token(a, b):
    states = [b.select(-2, 0)]
    for decay, new in zip(a.unbind(-2)[1:], b.unbind(-2)[1:], strict=True):
        states.append(torch.addcmul(new, decay, states[-1]))
    return torch.stack(states, -2)


@exercise.alternative
def all_weights(a, b):
    n = b.shape[-2]
    rows = []
    for i in range(n):
        weights = [a[..., j + 1 : i + 1, :].prod(-2) for j in range(i + 1)]
        rows.append(sum(w * b[..., j, :] for j, w in enumerate(weights)))
    return torch.stack(rows, dim=-2)
