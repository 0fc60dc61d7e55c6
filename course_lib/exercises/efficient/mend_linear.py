"""Causal linear attention in chunks, with a fault to be mended."""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.linear import linear_attention_in_chunks

exercise = Exercise(
    reference=linear_attention_in_chunks,
    lesson="14",
    title="Find the bug: a leak in chunks",
    minutes=6,
    difficulty=2,
    hints=(
        "Chunks of one token pass. So what goes wrong only where a query has later tokens beside "
        "it in its own chunk?",
        "A numerator and a denominator are made for each query. Which keys does each of the two "
        "count? They must be the same keys.",
    ),
    clauses={
        "sums over all j <= i": "own_chunk_alone",
        "computed as a small square": "nothing_hidden",
        "only S and z are handed on": "values_too",
        "Any chunk length gives the same result": "the length of a chunk",
        "the last chunk may be shorter": "a shorter chunk at the end",
        "Time O": GIVEN,
    },
    # a result does not say how long its chunks were; -1 is another name of the only axis, 0
    equivalent=("chunk ignored", "0 -> -1"),
)


def tokens(draw: Draw, *shape: int, d_k: int, d_v: int):
    return draw.normal(*shape, d_k), draw.normal(*shape, d_k), draw.normal(*shape, d_v)


@exercise.cases
def cases(draw: Draw):
    yield "chunks of one token", (*tokens(draw, 3, d_k=2, d_v=3), 1)
    yield "one token", (*tokens(draw, 1, d_k=4, d_v=3), 4)
    yield "two tokens in one chunk", (*tokens(draw, 2, d_k=2, d_v=3), 2)
    yield "three chunks of two", (*tokens(draw, 6, d_k=3, d_v=2), 2)
    yield "a shorter chunk at the end", (*tokens(draw, 7, d_k=4, d_v=3), 3)
    yield "a chunk longer than the text", (*tokens(draw, 5, d_k=2, d_v=4), 9)
    yield "as many tokens as each has numbers", (*tokens(draw, 4, d_k=4, d_v=4), 2)
    yield "a batch of texts", (*tokens(draw, 2, 6, d_k=3, d_v=4), 2)
    yield "two batch dimensions", (*tokens(draw, 3, 2, 5, d_k=4, d_v=2), 2)


@exercise.edges
def edges(draw: Draw):
    q, k, v = tokens(draw, 3, d_k=1, d_v=2)
    q[1] = -16
    yield "a query whose feature is very small", (q, k, v, 2)


@exercise.requires("the length of a chunk changes nothing")
def any_length(answer, draw: Draw):
    inputs = tokens(draw, 12, d_k=3, d_v=4)
    found = [answer(*inputs, chunk) for chunk in (1, 4, 5, 12)]
    return found[0].std() > 0 and all(torch.allclose(x, found[0], atol=1e-5) for x in found)


@exercise.requires("a later token changes nothing for those before it")
def hides_the_future(answer, draw: Draw):
    q, k, v = tokens(draw, 6, d_k=3, d_v=4)
    others = (torch.cat([x[:4], -x[4:]]) for x in (q, k, v))
    found, changed = answer(q, k, v, 3), answer(*others, 3)
    rests = torch.isclose(changed, found, atol=1e-5).all(-1)
    return rests[:4].all() and not rests[4:].any()


@exercise.requires("equal values come back as they are: each row of weights sums to one")
def equal_values(answer, draw: Draw):
    q, k, _ = tokens(draw, 7, d_k=3, d_v=1)
    return torch.allclose(answer(q, k, torch.full((7, 2), 5.0), 3), torch.tensor(5.0), atol=1e-4)


@exercise.hand_out
def divided_by_all(q, k, v, chunk):
    """The fault was the sum of the weights: it counted all keys of the query's chunk, later ones
    included, while the values were summed up to the query. The weights of a row no longer summed
    to one, and they depended on the future."""
    queries, keys = F.elu(q) + 1, F.elu(k) + 1
    state = q.new_zeros(*q.shape[:-2], q.shape[-1], v.shape[-1])
    total = torch.zeros_like(q[..., 0, :])
    outputs = []
    for start in range(0, q.shape[-2], chunk):
        q_now, k_now, v_now = (x[..., start : start + chunk, :] for x in (queries, keys, v))
        # weigh the tokens of this chunk, none after the query
        weights = (q_now @ k_now.mT).tril()
        # sum up the weights, of earlier chunks and of this one
        sums = (q_now * (total + k_now.sum(-2)).unsqueeze(-2)).sum(-1)
        # read the state of earlier chunks, and this chunk's own values
        found = q_now @ state + weights @ v_now
        outputs.append(found / sums.unsqueeze(-1))
        # add this chunk to the state
        state, total = state + k_now.mT @ v_now, total + k_now.sum(-2)
    return torch.cat(outputs, dim=-2)


def weighed(q, k, v, mask):
    """Weigh the values by features under a mask, and return the sums of the weights beside them."""
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).mT * mask
    return weights @ v, weights.sum(-1, keepdim=True)


def ones(x):
    return torch.ones(x.shape[-2], x.shape[-2])


def chunk_of(x, chunk):
    return torch.arange(x.shape[-2]).unsqueeze(-1) // chunk


@exercise.mistake
def values_too(q, k, v, chunk):
    """Numerator and denominator agree now, but both count the later keys of the chunk: each query
    sees its whole chunk. Which of the two was right before?"""
    own = chunk_of(q, chunk)
    found, sums = weighed(q, k, v, own >= own.mT)
    return found / sums


@exercise.mistake
def earlier_chunks_alone(q, k, v, chunk):
    """The denominator counts the earlier chunks alone. The numerator also counts the chunk's own
    keys, up to the query."""
    own = chunk_of(q, chunk)
    found, _ = weighed(q, k, v, ones(q).tril())
    _, sums = weighed(q, k, v, own > own.mT)
    return found / sums.clamp(min=1e-6)


@exercise.mistake
def own_chunk_alone(q, k, v, chunk):
    """The denominator counts the chunk's own keys alone. The state that the numerator reads also
    holds the earlier chunks."""
    own = chunk_of(q, chunk)
    found, _ = weighed(q, k, v, ones(q).tril())
    _, sums = weighed(q, k, v, ones(q).tril() * (own == own.mT))
    return found / sums


@exercise.mistake
def not_divided(q, k, v, chunk):
    """Nothing is divided any more, so the weights of a row do not sum to one."""
    return weighed(q, k, v, ones(q).tril())[0]


@exercise.mistake
def nothing_hidden(q, k, v, chunk):
    """Every query sees every key now, later ones included. What does `tril` leave?"""
    found, sums = weighed(q, k, v, ones(q))
    return found / sums


@exercise.alternative
def as_one_square(q, k, v, chunk):
    found, sums = weighed(q, k, v, ones(q).tril())
    return found / sums


@exercise.alternative
def by_running_sums(q, k, v, chunk):
    queries, keys = F.elu(q) + 1, F.elu(k) + 1
    state = (keys.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(-3)
    found = (queries.unsqueeze(-1) * state).sum(-2)
    return found / (queries * keys.cumsum(-2)).sum(-1, keepdim=True)
