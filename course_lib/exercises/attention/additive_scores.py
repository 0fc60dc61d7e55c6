"""A small network scores each pair of query and key."""

import torch

from course_lib.attention import additive_scores
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=additive_scores,
    lesson="02_scores",
    title="A small network scores each pair",
    minutes=12,
    difficulty=2,
    hints=(
        "After their matrices, queries and keys have one size, d_a. What may be done with two "
        "vectors of one size that a matrix product does not do?",
        "Every query is to be added to every key: the sums have an axis for queries, one for keys "
        "and one of size d_a. Where does each of the two need an axis of size one?",
        "v has d_a numbers, and a score is one number. Which product of the last axis with v "
        "leaves one?",
    ),
)


def sizes(draw: Draw, *batch: int, queries: int, keys: int, d_q: int, d_k: int, d_a: int):
    return (
        draw.normal(*batch, queries, d_q),
        draw.normal(*batch, keys, d_k),
        draw.normal(d_q, d_a),
        draw.normal(d_k, d_a),
        draw.normal(d_a),
    )


@exercise.cases
def cases(draw: Draw):
    yield "one query, two keys", sizes(draw, queries=1, keys=2, d_q=3, d_k=2, d_a=4)
    yield "queries as large as keys", sizes(draw, queries=3, keys=4, d_q=2, d_k=2, d_a=5)
    yield "as many queries as keys", sizes(draw, queries=3, keys=3, d_q=4, d_k=2, d_a=5)
    yield "a batch", sizes(draw, 2, queries=4, keys=3, d_q=2, d_k=6, d_a=5)
    yield "two batch dimensions", sizes(draw, 3, 2, queries=5, keys=4, d_q=2, d_k=3, d_a=6)
    yield "one key", sizes(draw, queries=3, keys=1, d_q=2, d_k=4, d_a=5)
    yield "as many queries as each has numbers", sizes(draw, queries=3, keys=5, d_q=3, d_k=2, d_a=4)


@exercise.edges
def edges(draw: Draw):
    q, k, *weights = sizes(draw, queries=4, keys=6, d_q=2, d_k=3, d_a=5)
    yield "queries and keys far from zero", (100 * q, 100 * k, *weights)


@exercise.requires("no score is larger than the sum of |v|, however long the queries")
def bounded(answer, draw: Draw):
    q, k, w_q, w_k, v = sizes(draw, queries=4, keys=3, d_q=5, d_k=2, d_a=6)
    scores = answer(1000 * q, k, w_q, w_k, v)
    return 0 < scores.abs().max() <= v.abs().sum() + 1e-4


@exercise.requires("exchanging the queries and W_q with the keys and W_k transposes the scores")
def exchanged(answer, draw: Draw):
    q, k, w_q, w_k, v = sizes(draw, queries=4, keys=3, d_q=5, d_k=2, d_a=6)
    scores = answer(q, k, w_q, w_k, v)
    turned = answer(k, q, w_k, w_q, v)
    return scores.abs().max() > 0 and torch.allclose(turned, scores.mT, atol=1e-5)


@exercise.mistake
def no_tanh(q, k, w_q, w_k, v):
    """Behaves as if nothing were squashed: without its tanh the network is linear, and each score
    is a part from the query plus a part from the key."""
    return (q @ w_q @ v).unsqueeze(-1) + (k @ w_k @ v).unsqueeze(-2)


@exercise.mistake
def squashed_apart(q, k, w_q, w_k, v):
    """Query and key were squashed apart and added afterwards, so neither can change what the other
    is worth. In the formula, what stands inside the tanh?"""
    return (torch.tanh(q @ w_q) @ v).unsqueeze(-1) + (torch.tanh(k @ w_k) @ v).unsqueeze(-2)


@exercise.mistake
def squashed_last(q, k, w_q, w_k, v):
    """The score itself was squashed, to between -1 and 1. In the formula, does v come before the
    tanh or after it?"""
    return torch.tanh((q @ w_q @ v).unsqueeze(-1) + (k @ w_k @ v).unsqueeze(-2))


@exercise.mistake
def multiplied(q, k, w_q, w_k, v):
    """Query and key were multiplied with each other, entry by entry. What is this score called, and
    what does that say about the sign between the two?"""
    return torch.tanh((q @ w_q).unsqueeze(-2) * (k @ w_k).unsqueeze(-3)) @ v


@exercise.mistake(raises=RuntimeError)
def in_the_same_place(q, k, w_q, w_k, v):
    """Each query was added to the key in the same place only. Which axis do queries and keys have
    in common, and which has each of them to itself?"""
    return torch.tanh(q @ w_q + k @ w_k) @ v


@exercise.mistake
def transposed(q, k, w_q, w_k, v):
    """The scores lie the other way round: row i is to hold the scores of query i, one for each key.
    Which of the two got the new axis before, and which after its own?"""
    return torch.tanh((q @ w_q).unsqueeze(-3) + (k @ w_k).unsqueeze(-2)) @ v


@exercise.mistake(raises=RuntimeError)
def matrices_swapped(q, k, w_q, w_k, v):
    """The two matrices have changed places: the queries met W_k and the keys W_q. That goes
    unnoticed only while both have one size."""
    return torch.tanh((q @ w_k).unsqueeze(-2) + (k @ w_q).unsqueeze(-3)) @ v


@exercise.mistake
def not_summed(q, k, w_q, w_k, v):
    """Each pair still has d_a numbers: they were multiplied by v and not summed. How many numbers
    is a score?"""
    return torch.tanh((q @ w_q).unsqueeze(-2) + (k @ w_k).unsqueeze(-3)) * v


@exercise.mistake
def v_forgotten(q, k, w_q, w_k, v):
    """v played no part: the entries of each squashed sum were added as if they all counted the
    same."""
    return torch.tanh((q @ w_q).unsqueeze(-2) + (k @ w_k).unsqueeze(-3)).sum(-1)


@exercise.mistake(raises=RuntimeError)
def axes_from_the_front(q, k, w_q, w_k, v):
    """Right for one sentence, not for a batch: the new axes were counted from the front, where the
    batch stands. Which axis of queries is the same one in both?"""
    return torch.tanh((q @ w_q).unsqueeze(1) + (k @ w_k).unsqueeze(0)) @ v


@exercise.mistake
def weighed_inside(q, k, w_q, w_k, v):
    """v was multiplied inside the tanh, so that each entry adds at most 1 to the score. What is
    squashed first, and what is weighed then?"""
    return torch.tanh(((q @ w_q).unsqueeze(-2) + (k @ w_k).unsqueeze(-3)) * v).sum(-1)


@exercise.mistake
def squashed_by_a_sigmoid(q, k, w_q, w_k, v):
    """The sums were squashed by a sigmoid, to numbers from 0 to 1, where the formula has the tanh,
    from -1 to 1."""
    return torch.sigmoid((q @ w_q).unsqueeze(-2) + (k @ w_k).unsqueeze(-3)) @ v


@exercise.mistake
def cut_off_by_a_relu(q, k, w_q, w_k, v):
    """Negative sums were cut off by a ReLU, and large ones stayed large: the formula has a tanh."""
    return torch.relu((q @ w_q).unsqueeze(-2) + (k @ w_k).unsqueeze(-3)) @ v


@exercise.alternative
def one_query_after_another(q, k, w_q, w_k, v):
    keys = torch.matmul(k, w_k)
    rows = [torch.tanh(query.unsqueeze(-2) + keys) @ v for query in torch.matmul(q, w_q).unbind(-2)]
    return torch.stack(rows, dim=-2)


@exercise.alternative
def pairs_side_by_side(q, k, w_q, w_k, v):
    queries, keys = q.shape[-2], k.shape[-2]
    left = q.unsqueeze(-2).expand(*q.shape[:-1], keys, q.shape[-1])
    right = k.unsqueeze(-3).expand(*k.shape[:-2], queries, *k.shape[-2:])
    pairs = torch.cat([left, right], dim=-1) @ torch.cat([w_q, w_k])
    return torch.einsum("...a,a->...", pairs.tanh(), v)
