"""One memory for six layers, with a fault that only one of them shows, to be mended."""

import torch
from einops import einsum

from course_lib.beyond import matrix_memory
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=matrix_memory,
    lesson="15",
    title="Find the bug: five of six rows are right",
    minutes=6,
    difficulty=2,
    hints=(
        "Which cases fail? Look at their decay and their erase: where is one of them 1, or 0, so "
        "that a fault in the other would not show?",
        "In the equation, the decay multiplies a bracket. Expand it for two tokens with the same "
        "key of norm 1, a decay of one half and erase 1: how much of the first value is taken "
        "out, and how much was still there?",
    ),
    clauses={
        "of zeros before the first token": "one token",
        "With decay 1 and": "linear attention",
        "Time O": GIVEN,
        "memory of the state": GIVEN,
    },
    forbidden=("course_lib.beyond.matrix_memory_at_once",),
)


def drawn(draw: Draw, *batch: int, n: int, d: int, d_v: int) -> tuple:
    """Draw queries, keys of about norm 1, values, and three numbers for each token."""
    q, k, v = draw.normal(*batch, n, d), draw.normal(*batch, n, d), draw.normal(*batch, n, d_v)
    shares = (draw.normal(*batch, n).sigmoid() for _ in range(3))
    return q, k / d**0.5, v, *shares


@exercise.cases
def cases(draw: Draw):
    q, k, v, decay, erase, write = drawn(draw, n=4, d=3, d_v=2)
    yield "linear attention", (q, k, v, decay * 0 + 1, erase * 0, write * 0 + 1)
    yield "a fixed decay, as in RetNet", (q, k, v, decay * 0 + 0.5, erase * 0, write * 0 + 1)
    yield "a decay for each token, as in Mamba-2", (q, k, v, decay, erase * 0, write)
    yield "a decaying average", (q, k, v, decay, erase * 0, 1 - decay)
    yield "the delta rule", (q, k, v, decay * 0 + 1, erase, erase)
    yield "the gated delta rule", (q, k, v, decay, erase, erase)
    yield "three numbers for each token", drawn(draw, n=5, d=2, d_v=3)
    yield "one token", drawn(draw, n=1, d=2, d_v=3)
    yield "as many tokens as numbers", drawn(draw, n=3, d=3, d_v=3)
    yield "a batch of texts", drawn(draw, 3, n=4, d=2, d_v=5)
    yield "two batch dimensions", drawn(draw, 2, 3, n=5, d=4, d_v=2)


@exercise.edges
def edges(draw: Draw):
    q, k, *others = drawn(draw, n=40, d=2, d_v=2)
    yield "a long text", (q, k / k.norm(dim=-1, keepdim=True), *others)
    q, k, v, decay, *others = drawn(draw, 3, n=5, d=3, d_v=2)
    decay = decay * torch.tensor([1.0, 1, 0, 1, 1])
    yield "a decay of 0 forgets everything", (q, k, v, decay, *others)


@exercise.requires("with keys of length 1 and erase = write = 1, the newest value comes back")
def newest_value(answer, draw: Draw):
    _, k, v, decay, _, _ = drawn(draw, n=6, d=3, d_v=4)
    k, ones = k / k.norm(dim=-1, keepdim=True), torch.ones(6)
    return torch.allclose(answer(k, k, v, decay, ones, ones), v, atol=1e-4)


@exercise.requires("after a decay of 0, nothing of what came before is read")
def forgets(answer, draw: Draw):
    inputs = drawn(draw, n=6, d=3, d_v=2)
    inputs[3][3] = 0
    found, tail = answer(*inputs), answer(*(x[3:] for x in inputs))
    return found.std() > 0 and torch.allclose(found[3:], tail, atol=1e-5)


@exercise.hand_out
def erased_before_the_decay(q, k, v, decay, erase, write):
    """The fault was the order: what the key held was asked before the decay, so more was taken out
    than was left. Where nothing decays, or nothing is erased, it makes no difference."""
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    outputs = []
    for t in range(q.shape[-2]):
        key = k[..., t, :]
        # ask what is left under this key
        held = einsum(key, state, "... d, ... d d_v -> ... d_v")
        # let the whole memory decay
        state = decay[..., t, None, None] * state
        # write the new value, and take the old one out
        change = write[..., t, None] * v[..., t, :] - erase[..., t, None] * held
        state = state + einsum(key, change, "... d, ... d_v -> ... d d_v")
        # read by the query
        outputs.append(einsum(q[..., t, :], state, "... d, ... d d_v -> ... d_v"))
    return torch.stack(outputs, dim=-2)


def run(q, k, v, decay, erase, write, order="decay first", read=None, early=False):
    """Run token by token, with one thing changed."""
    state, found = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1]), []
    for t in range(q.shape[-2]):
        before = state
        key, fade = k[..., t, :, None], decay[..., t, None, None]
        held = key.mT @ state
        kept = state - (0 if order == "no erasing" else erase[..., t, None, None]) * key @ held
        new = write[..., t, None, None] * key @ v[..., t, None, :]
        if order == "all decays":
            state = fade * (kept + new)
        elif order == "no decay":
            state = kept + new
        else:
            state = fade * kept + new
        found.append((q if read is None else read)[..., t, None, :] @ (before if early else state))
    return torch.cat(found, dim=-2)


@exercise.mistake
def what_is_new_decays(q, k, v, decay, erase, write):
    """What is written decays at once. The decay multiplies the bracket alone: what was there
    before."""
    return run(q, k, v, decay, erase, write, order="all decays")


@exercise.mistake
def nothing_decays(q, k, v, decay, erase, write):
    """The decay is gone: what is erased is right now where nothing decays, and only there."""
    return run(q, k, v, decay, erase, write, order="no decay")


@exercise.mistake
def nothing_is_erased(q, k, v, decay, erase, write):
    """Nothing is erased any more, so the last two rows, the delta rules, only add."""
    return run(q, k, v, decay, erase, write, order="no erasing")


@exercise.mistake
def decays_twice(q, k, v, decay, erase, write):
    """What is erased decays twice. The memory has decayed already when the key asks it."""
    return run(q, k, v, decay, decay * erase, write)


@exercise.mistake
def read_too_early(q, k, v, decay, erase, write):
    """Each query reads the state before its own token has written, so the first one reads zeros.
    Which state is S_t, the old one or the new?"""
    return run(q, k, v, decay, erase, write, early=True)


@exercise.mistake
def read_by_the_key(q, k, v, decay, erase, write):
    """The state is read by the key. It is the query that reads."""
    return run(q, k, v, decay, erase, write, read=k)


@exercise.alternative
def by_matrices(q, k, v, decay, erase, write):
    return run(q, k, v, decay, erase, write)


@exercise.alternative
def decayed_difference(q, k, v, decay, erase, write):
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    outputs = []
    for t in range(q.shape[-2]):
        key, fade = k[..., t, :], decay[..., t, None]
        held = fade * einsum(key, state, "... d, ... d d_v -> ... d_v")
        change = write[..., t, None] * v[..., t, :] - erase[..., t, None] * held
        state = fade.unsqueeze(-1) * state
        state = state + einsum(key, change, "... d, ... d_v -> ... d d_v")
        outputs.append(einsum(q[..., t, :], state, "... d, ... d d_v -> ... d_v"))
    return torch.stack(outputs, dim=-2)
