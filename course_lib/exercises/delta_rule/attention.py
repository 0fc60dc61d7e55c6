"""A memory that corrects itself: what a key held is taken out before the new value goes in."""

import torch

from course_lib.beyond import delta_rule
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=delta_rule,
    lesson="15",
    title="Replace, do not add",
    minutes=12,
    difficulty=3,
    hints=(
        "The state is a matrix of d x d_v numbers. What comes out if a key of d numbers is "
        "multiplied with it from the left, and with what is that compared?",
        "A key and a difference of values make a matrix of the state's shape. Which product of two "
        "vectors is that, and how do axes of size 1 write it?",
        "Does a token read before or after it has written? Read the indices of the second formula.",
    ),
    clauses={
        "of zeros before the first token": "one token",
        "is v_t exactly": "with keys of length 1",
        "Time O": GIVEN,
        "memory of the state": GIVEN,
    },
    forbidden=("course_lib.beyond.delta_rule_in_chunks",),
)


def drawn(draw: Draw, *batch: int, n: int, d: int, d_v: int) -> tuple:
    q, k, v = draw.normal(*batch, n, d), draw.normal(*batch, n, d), draw.normal(*batch, n, d_v)
    # keys of about length one, so that the state does not grow
    return q, k / d**0.5, v, draw.normal(*batch, n).sigmoid()


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", drawn(draw, n=2, d=3, d_v=4)
    yield "five tokens", drawn(draw, n=5, d=2, d_v=3)
    yield "as many tokens as numbers", drawn(draw, n=4, d=4, d_v=3)
    yield "values of one number", drawn(draw, n=6, d=3, d_v=1)
    yield "values as long as keys", drawn(draw, n=4, d=3, d_v=3)
    yield "one token", drawn(draw, n=1, d=2, d_v=5)
    q, k, v, beta = drawn(draw, n=4, d=3, d_v=2)
    yield "a token that writes nothing", (q, k, v, beta * torch.tensor([1.0, 0.0, 1.0, 1.0]))
    yield "a batch of texts", drawn(draw, 3, n=4, d=2, d_v=5)
    yield "two batch dimensions", drawn(draw, 2, 3, n=5, d=4, d_v=2)


@exercise.edges
def edges(draw: Draw):
    q, k, v, beta = drawn(draw, n=40, d=3, d_v=2)
    yield "a long text", (q, k / k.norm(dim=-1, keepdim=True), v, beta)


@exercise.requires("with keys of length 1 and beta 1, the newest value comes back", points=2)
def newest_value(answer, draw: Draw):
    _, k, v, _ = drawn(draw, n=6, d=3, d_v=4)
    k = k / k.norm(dim=-1, keepdim=True)
    return torch.allclose(answer(k, k, v, torch.ones(6)), v, atol=1e-4)


@exercise.requires("a value written again under the same key replaces the old one, and no other")
def replaced(answer, draw: Draw):
    keys, values = torch.eye(4)[[0, 1, 0, 2]], draw.normal(4, 3)
    q = torch.eye(4)[[3, 3, 0, 1]]
    found = answer(q, keys, values, torch.ones(4))
    nothing = torch.zeros(2, 3)
    return torch.allclose(found, torch.cat([nothing, values[2:3], values[1:2]]), atol=1e-5)


def run(q, k, v, beta, change=None, read_before=False, ask=None):
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    found = []
    for t in range(q.shape[-2]):
        key, value, share = k[..., t, :], v[..., t, :], beta[..., t, None]
        asked = key if ask is None else ask[..., t, :]
        held = (asked.unsqueeze(-1) * state).sum(-2)
        new = change(value, held, share) if change else share * (value - held)
        before = state
        state = state + key.unsqueeze(-1) * new.unsqueeze(-2)
        seen = before if read_before else state
        found.append((q[..., t, :].unsqueeze(-1) * seen).sum(-2))
    return torch.stack(found, dim=-2)


@exercise.mistake
def adds(q, k, v, beta):
    """Values were added, and what the key held before stayed: this is linear attention. What is to
    be subtracted from the value first?"""
    return run(q, k, v, beta, change=lambda value, held, share: share * value)


@exercise.mistake
def wrong_sign(q, k, v, beta):
    """The difference has the wrong sign: the value is to come nearer to what is stored, so write
    the value minus what is held."""
    return run(q, k, v, beta, change=lambda value, held, share: share * (value + held))


@exercise.mistake
def beta_ignored(q, k, v, beta):
    """beta changes nothing: each token overwrites fully. beta_t is the share of the difference that
    is written."""
    return run(q, k, v, beta, change=lambda value, held, share: value - held)


@exercise.mistake
def beta_for_the_value_alone(q, k, v, beta):
    """beta multiplies the value alone. It is a share of the difference, of what goes in and of what
    comes out."""
    return run(q, k, v, beta, change=lambda value, held, share: share * value - held)


@exercise.mistake
def read_too_early(q, k, v, beta):
    """A token reads before it has written. In o_t = q_t S_t, which state does it read?"""
    return run(q, k, v, beta, read_before=True)


@exercise.mistake
def asked_by_the_query(q, k, v, beta):
    """What is held was asked by the query. What is to be replaced is what this *key* held."""
    return run(q, k, v, beta, ask=q)


@exercise.mistake
def keys_normalised(q, k, v, beta):
    """The keys were brought to length one here. That is a good habit of those who call this
    function; the formula has none of it."""
    return run(q, k / k.norm(dim=-1, keepdim=True), v, beta)


@exercise.mistake
def scaled(q, k, v, beta):
    """The queries were divided by the root of d. There is no softmax here whose scores could
    grow."""
    return run(q / q.shape[-1] ** 0.5, k, v, beta)


@exercise.mistake
def reads_the_last_state(q, k, v, beta):
    """Every token reads the last state, and so the future. Read inside the loop, after writing."""
    n = q.shape[-2]
    rows = [run(q[..., i : i + 1, :].expand_as(q), k, v, beta)[..., -1, :] for i in range(n)]
    return torch.stack(rows, dim=-2)


@exercise.alternative
def by_matrices(q, k, v, beta):
    identity = torch.eye(q.shape[-1], dtype=q.dtype)
    state = torch.zeros_like(k[..., 0, :, None] * v[..., 0, None, :])
    found = []
    for t in range(k.shape[-2]):
        key, share = k[..., t, :, None], beta[..., t, None, None]
        state = (identity - share * key @ key.mT) @ state + share * key @ v[..., t, None, :]
        found.append(q[..., t, None, :] @ state)
    return torch.cat(found, dim=-2)


@exercise.alternative
def all_changes_at_once(q, k, v, beta):
    share = beta.unsqueeze(-1)
    system = torch.eye(k.shape[-2], dtype=k.dtype) + (share * (k @ k.mT)).tril(-1)
    return (q @ k.mT).tril() @ torch.linalg.solve(system, share * v)
