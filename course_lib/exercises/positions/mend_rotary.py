"""Attention with rotary positions that writes token by token, with a fault to be mended."""

import torch
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.checking.exercise import Draw, Exercise
from course_lib.positions import rotary, rotary_attention

exercise = Exercise(
    reference=rotary_attention,
    lesson="04",
    title="Find the bug: rotary, one token at a time",
    minutes=6,
    difficulty=2,
    hints=(
        "Take three keys and one query, the last token. By which position should it be turned, "
        "and by which is it turned here?",
        "With as many queries as keys nothing is wrong. Which tensors have other sizes if there "
        "are fewer queries, and where does the first query's place enter?",
    ),
    clauses={
        "brings one new query at a time": "one new token",
        "Values are not turned": "values_turned",
    },
    # a negative axis that is also the last one
    equivalent=("-1 -> 1",),
)


@exercise.cases
def cases(draw: Draw):
    yield "as many queries as keys", (draw.normal(3, 2), draw.normal(3, 2), draw.normal(3, 5))
    yield "one new token", (draw.normal(1, 4), draw.normal(6, 4), draw.normal(6, 3))
    yield "two new tokens", (draw.normal(2, 4), draw.normal(7, 4), draw.normal(7, 3))
    yield "one token", (draw.normal(1, 6), draw.normal(1, 6), draw.normal(1, 4))
    yield "a batch", (draw.normal(2, 3, 4), draw.normal(2, 5, 4), draw.normal(2, 5, 6))
    heads = draw.normal(2, 3, 4, 2), draw.normal(2, 3, 5, 2), draw.normal(2, 3, 5, 7)
    yield "two batch dimensions", heads
    square = draw.normal(4, 4, 4), draw.normal(4, 4, 4), draw.normal(4, 4, 4)
    yield "all sizes alike", square


@exercise.requires("the last tokens alone get what they get in the whole text", points=2)
def token_by_token(answer, draw: Draw):
    q, k, v = draw.normal(6, 4), draw.normal(6, 4), draw.normal(6, 3)
    whole = answer(q, k, v)
    apart = max(
        (answer(q[i : i + 1], k[: i + 1], v[: i + 1]) - whole[i]).abs().max() for i in range(6)
    )
    return apart < 1e-4 and not torch.allclose(whole[-1], v.mean(0), atol=1e-2)


@exercise.hand_out
def from_the_start(q, k, v):
    """The fault was `keys[:n_q]`: with a cache, the one new query was turned as if it were the
    first token, so every distance was wrong. With as many queries as keys nothing shows."""
    (n_q, d_k), n_k = q.shape[-2:], k.shape[-2]
    if n_q > n_k:
        raise ValueError(f"the queries are the last of the tokens, but {n_q} are more than {n_k}")
    # count the places of the keys, and those of the queries
    keys = torch.arange(n_k, device=q.device)
    queries = torch.arange(n_k - n_q, n_k, device=q.device)
    # turn both by their places, and let each query look at no later key
    scores = dot_scores(rotary(q, keys[:n_q]), rotary(k, keys)) / d_k**0.5
    weights = softmax(scores, queries.unsqueeze(-1) >= keys)
    return weighted_sum(weights, v)


def attended(q, k, v, queries, keys, scale=None, mask=True):
    """Attend with these places; the mask is the right one, or none."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    scores = dot_scores(rotary(q, queries), rotary(k, keys)) / (scale or q.shape[-1] ** 0.5)
    last = torch.arange(n_k - n_q, n_k).unsqueeze(-1) >= torch.arange(n_k)
    return weighted_sum(softmax(scores, last if mask else None), v)


def places(q, k):
    n_q, n_k = q.shape[-2], k.shape[-2]
    return torch.arange(n_k - n_q, n_k), torch.arange(n_k)


@exercise.mistake
def keys_moved_instead(q, k, v):
    """The queries are counted from 0 still, and the keys from 0 too, but from the other end. Which
    distance has the newest query from the newest key?"""
    n_q, n_k = q.shape[-2], k.shape[-2]
    return attended(q, k, v, torch.arange(n_q), torch.arange(n_k).flip(0))


@exercise.mistake
def one_too_far(q, k, v):
    """Each query is turned as if it were one place further on. The newest query belongs to the
    newest key: how far apart are the two?"""
    queries, keys = places(q, k)
    return attended(q, k, v, queries + 1, keys)


@exercise.mistake
def all_at_the_end(q, k, v):
    """All queries are turned as the last token is. Two new tokens are at two places."""
    queries, keys = places(q, k)
    return attended(q, k, v, torch.full_like(queries, len(keys) - 1), keys)


@exercise.mistake
def first_tokens(q, k, v):
    """The queries are the first tokens now, in their places and in the mask. A model that writes
    brings the newest one: which keys may it see?"""
    queries, keys = torch.arange(q.shape[-2]), torch.arange(k.shape[-2])
    scores = dot_scores(rotary(q, queries), rotary(k, keys)) / q.shape[-1] ** 0.5
    return weighted_sum(softmax(scores, queries.unsqueeze(-1) >= keys), v)


@exercise.mistake
def not_itself(q, k, v):
    """The places are right now, but no query sees its own key. That line was right before: j <= i
    has i in it."""
    queries, keys = places(q, k)
    scores = dot_scores(rotary(q, queries), rotary(k, keys)) / q.shape[-1] ** 0.5
    return weighted_sum(softmax(scores, queries.unsqueeze(-1) > keys), v)


@exercise.mistake
def no_mask(q, k, v):
    """The places are right now, but each query sees the keys behind it. That line was right
    before."""
    return attended(q, k, v, *places(q, k), mask=False)


@exercise.mistake(raises=ValueError)
def values_turned(q, k, v):
    """The values were turned as well. What a token says is the same wherever it is: only the scores
    know of places."""
    return attended(q, k, rotary(v, places(q, k)[1]), *places(q, k))


@exercise.mistake
def not_turned(q, k, v):
    """Neither query nor key is turned, so order is lost. The fault is in the places only."""
    queries, keys = places(q, k)
    return attended(q, k, v, 0 * queries, 0 * keys)


@exercise.alternative
def with_shifted_keys(q, k, v):
    n_q, n_k = q.shape[-2], k.shape[-2]
    back = torch.arange(n_k, device=q.device) - (n_k - n_q)
    seen = torch.arange(n_q, device=q.device).unsqueeze(-1) >= back
    turned = rotary(q, torch.arange(n_q, device=q.device)), rotary(k, back)
    return F.scaled_dot_product_attention(*turned, v, attn_mask=seen)
