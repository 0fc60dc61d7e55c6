"""Tokens look only at tokens that point the same way, and find them by sorting."""

import torch
from torch.nn import functional as F

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.efficient.lsh import lsh_attention

exercise = Exercise(
    reference=lsh_attention,
    lesson="14_hashing",
    title="Look where the others point",
    minutes=35,
    difficulty=3,
    hints=(
        "Eight tokens, in the buckets 1 0 1 2 0 1 1 2, and chunks of four. Write the tokens down "
        "in the order of their buckets. Which tokens are in the first chunk, which in the second?",
        "In that order, whom may the last token of bucket 1 look at? Three things decide: how far "
        "back, which bucket, and that it is not the token itself. And a token that is left with "
        "nobody?",
        "Everything is computed in sorted order, and has to go back. If `order` says which token "
        "is at a place, what says at which place a token is?",
        "Chunks side by side make an axis of their own. How do you lay beside each of them the one "
        "before it, and what comes before the first?",
    ),
    no_edge={"a row of zeros": "a vector of zeros has no direction"},
    clauses={
        "Sorted by bucket": "never_sorted",
        "within one by their place in the text": "two buckets, one chunk",
        "cut into chunks": "whole_buckets",
        "the first chunk has none before it": "first_sees_last",
        "Keys are the queries brought to length 1": "keys_as_they_are",
        "only if it sees nothing else": "looks_at_itself",
        "is dense attention in which no token": "one bucket and one chunk",
        "no token looks at a later one": "causal_ignored",
        "no tensor holds n x n numbers": "square_of_scores",
    },
    forbidden=(
        *FUSED_ATTENTION,
        "course_lib.efficient.kernel.attend",
        "course_lib.efficient.lsh.lsh_attention_in_rounds",
    ),
)


def tokens(draw: Draw, *shape: int, d_k: int, d_v: int, buckets: int):
    return draw.normal(*shape, d_k), draw.normal(*shape, d_v), draw.integers(0, buckets, *shape)


@exercise.cases
def cases(draw: Draw):
    qk, v, one = tokens(draw, 4, d_k=3, d_v=2, buckets=1)
    yield "one bucket, one chunk", (qk, v, one, 4)
    yield "two buckets, one chunk", (qk, v, torch.tensor([1, 0, 1, 0]), 4)
    yield "one bucket, three chunks", (*tokens(draw, 6, d_k=2, d_v=4, buckets=1), 2)
    eight = torch.tensor([1, 0, 1, 2, 0, 1, 1, 2])
    yield "eight tokens, two chunks", (draw.normal(8, 3), draw.normal(8, 5), eight, 4)
    yield "twelve tokens, four chunks", (*tokens(draw, 12, d_k=4, d_v=2, buckets=3), 3)
    lonely = torch.tensor([3, 0, 3, 1, 2, 3])
    yield "tokens that are alone", (draw.normal(6, 2), draw.normal(6, 3), lonely, 3)
    yield "chunks of one token", (*tokens(draw, 5, d_k=3, d_v=4, buckets=2), 1)
    yield "one token", (*tokens(draw, 1, d_k=2, d_v=3, buckets=1), 1)
    yield "a batch of texts", (*tokens(draw, 2, 8, d_k=3, d_v=4, buckets=3), 2)
    yield "two batch dimensions", (*tokens(draw, 3, 2, 6, d_k=5, d_v=2, buckets=2), 3)
    yield "two chunks, causal", (*tokens(draw, 8, d_k=3, d_v=2, buckets=2), 4, True)
    yield "as many tokens as each has numbers", (*tokens(draw, 4, d_k=4, d_v=2, buckets=2), 2)


@exercise.requires("a long text never makes a tensor of n x n, and its results are right", points=2)
def no_square(answer, draw: Draw):
    n = 512
    inputs = tokens(draw, n, d_k=2, d_v=3, buckets=20)
    found = answer(*inputs, 32, max_numel=n * n // 4)
    return torch.allclose(found, lsh_attention(*inputs, 32), atol=1e-4)


@exercise.requires("one bucket and one chunk: dense attention in which no token looks at itself")
def dense(answer, draw: Draw):
    qk, v, bucket = tokens(draw, 6, d_k=3, d_v=4, buckets=1)
    keys = qk / qk.norm(dim=-1, keepdim=True)
    scores = (qk @ keys.mT / 3**0.5).fill_diagonal_(-torch.inf)
    return torch.allclose(answer(qk, v, bucket, 6), scores.softmax(-1) @ v, atol=1e-5)


@exercise.requires("which numbers the buckets have means nothing, as long as their order is kept")
def numbers_of_buckets(answer, draw: Draw):
    qk, v, buckets = tokens(draw, 8, d_k=3, d_v=4, buckets=3)
    found = answer(qk, v, buckets, 4)
    return found.std() > 0 and all(
        torch.allclose(answer(qk, v, others, 4), found, atol=1e-5)
        for others in (10 + 7 * buckets, 10**9 + buckets)
    )


@exercise.requires("a token of another bucket might as well be another token")
def another_bucket(answer, draw: Draw):
    qk, v = draw.normal(6, 3), draw.normal(6, 4)
    buckets = torch.tensor([1, 0, 1, 0, 1, 0])
    sign = torch.tensor([1.0, -1.0]).repeat(3).unsqueeze(-1)
    found, other = answer(qk, v, buckets, 6), answer(sign * qk, sign * v, buckets, 6)
    rests = torch.isclose(found, other, atol=1e-5).all(-1)
    return rests.tolist() == [True, False] * 3


@exercise.requires("large scores give right results, whether the largest are seen or hidden")
def large_scores(answer, draw: Draw):
    # tokens of one bucket come in pairs, which see each other alone, whatever they score
    one, v, buckets = draw.normal(4, 1, 3), draw.normal(8, 4), torch.arange(4).repeat_interleave(2)
    one = 1000 * (one.sign() + one)
    qk, values, own = tokens(draw, 8, d_k=3, d_v=2, buckets=2)
    several = answer(1000 * qk, values, own, 4)
    return torch.allclose(several, lsh_attention(1000 * qk, values, own, 4), atol=1e-3) and all(
        torch.allclose(answer(torch.cat([one, other * one], 1).view(8, 3), v, buckets, 4), partner)
        for other in (2, -2)
        for partner in [v.view(4, 2, 4).flip(1).view(8, 4)]
    )


def by_words(x, order):
    return x.gather(-2, order.unsqueeze(-1).expand(*order.shape, x.shape[-1]))


def with_the_one_before(x, chunk, first):
    """Cut into chunks, and lay beside each the one before it: (..., chunks, 2 chunk, d)."""
    cut = x.unflatten(-2, (-1, chunk))
    if first == "the last":
        return torch.cat([cut.roll(1, -3), cut], dim=-2)
    before = torch.cat([torch.full_like(cut[..., :1, :, :], first), cut[..., :-1, :, :]], dim=-3)
    return torch.cat([before, cut], dim=-2)


def earlier(seen, causal):
    """Keep what is seen of earlier tokens, where later ones are hidden."""
    return seen.tril() if causal else seen


def in_chunks(qk, v, buckets, chunk, causal, **change):
    """Sort, cut, attend and put back, in as many ways as there are mistakes."""
    order = buckets.argsort(dim=-1, stable=True)
    if change.get("unsorted"):
        order = torch.arange(buckets.shape[-1]).expand(buckets.shape)
    keys = qk / (1 if change.get("long_keys") else qk.norm(dim=-1, keepdim=True))
    q = keys if change.get("short_queries") else qk
    q, keys, values = (by_words(x, order) for x in (q, keys, v))
    places, own = order.unsqueeze(-1), buckets.gather(-1, order).unsqueeze(-1)
    around = change.get("first", -1)
    fill = 0 if around == -1 else around
    keys, values = (with_the_one_before(x, chunk, fill) for x in (keys, values))
    q, mine, here = (x.unflatten(-2, (-1, chunk)) for x in (q, own, places))
    theirs, there = (with_the_one_before(x, chunk, around).mT for x in (own, places))
    seen = (there >= 0) if change.get("any_bucket") else (mine == theirs) & (there >= 0)
    if change.get("own_chunk"):
        seen = seen & (torch.arange(2 * chunk) >= chunk)
    if causal:
        seen = seen & (there <= here)
    itself = here == there
    others = seen if change.get("itself") else seen & ~itself
    alone = ~others.any(-1, keepdim=True)
    seen = others if change.get("zeros_alone") else others | alone & itself
    scale = 1.0 if change.get("unscaled") else q.shape[-1] ** 0.5
    scores = (q @ keys.mT / scale).masked_fill(~seen, change.get("hidden", -1e30))
    weights = scores.softmax(-1) * (seen if "hidden" not in change else 1)
    if change.get("no_peak") or change.get("one_peak"):
        weights = (scores - (scores.amax() if change.get("one_peak") else 0)).exp()
        weights = weights / weights.sum(-1, keepdim=True)
    found = (weights @ values).flatten(-3, -2)
    if change.get("sorted"):
        return found
    return by_words(found, order if change.get("twice") else order.argsort(dim=-1))


@exercise.mistake(raises=MemoryError)
def square_of_scores(qk, v, buckets, chunk, causal=False):
    """All n x n scores were made, and nearly all of them hidden. Which tokens are near each other,
    once they are sorted by bucket?"""
    n = qk.shape[-2]
    order = buckets.argsort(dim=-1, stable=True)
    number = order.argsort(dim=-1) // chunk
    back = number.unsqueeze(-1) - number.unsqueeze(-2)
    seen = (buckets.unsqueeze(-1) == buckets.unsqueeze(-2)) & (back >= 0) & (back <= 1)
    itself = torch.eye(n, dtype=torch.bool)
    others = earlier(seen & ~itself, causal)
    seen = others | ~others.any(-1, keepdim=True) & itself
    keys = qk / qk.norm(dim=-1, keepdim=True)
    scores = (qk @ keys.mT / qk.shape[-1] ** 0.5).masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v


@exercise.mistake(raises=MemoryError)
def whole_buckets(qk, v, buckets, chunk, causal=False):
    """All tokens of a bucket see each other, however far apart they are when sorted, and n x n
    scores were made for it. How far does a chunk look?"""
    itself = torch.eye(qk.shape[-2], dtype=torch.bool)
    others = earlier((buckets.unsqueeze(-1) == buckets.unsqueeze(-2)) & ~itself, causal)
    seen = others | ~others.any(-1, keepdim=True) & itself
    keys = qk / qk.norm(dim=-1, keepdim=True)
    scores = (qk @ keys.mT / qk.shape[-1] ** 0.5).masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v


@exercise.mistake
def own_chunk_alone(qk, v, buckets, chunk, causal=False):
    """Each chunk sees itself alone, so a bucket that a cut goes through falls apart. Which other
    chunk may it see?"""
    return in_chunks(qk, v, buckets, chunk, causal, own_chunk=True)


@exercise.mistake
def first_sees_last(qk, v, buckets, chunk, causal=False):
    """The first chunk sees the last one. What comes before the first chunk? (`torch.roll` brings
    back at the front what it pushes out at the end.)"""
    return in_chunks(qk, v, buckets, chunk, causal, first="the last")


@exercise.mistake
def every_bucket(qk, v, buckets, chunk, causal=False):
    """The tokens of a chunk see all its buckets, where they should see their own only. What is the
    same in two tokens that may see each other?"""
    return in_chunks(qk, v, buckets, chunk, causal, any_bucket=True)


@exercise.mistake
def looks_at_itself(qk, v, buckets, chunk, causal=False):
    """Every token looks at itself, though it sees others. Its key is its own query: whom will it
    listen to most?"""
    return in_chunks(qk, v, buckets, chunk, causal, itself=True)


@exercise.mistake
def nothing_when_alone(qk, v, buckets, chunk, causal=False):
    """A token that sees nobody else gets zeros. It may look at itself, just then."""
    return in_chunks(qk, v, buckets, chunk, causal, zeros_alone=True)


@exercise.mistake
def keys_as_they_are(qk, v, buckets, chunk, causal=False):
    """The keys are as long as they came. A key is a query brought to length 1."""
    return in_chunks(qk, v, buckets, chunk, causal, long_keys=True)


@exercise.mistake
def queries_shortened(qk, v, buckets, chunk, causal=False):
    """The queries were brought to length 1 as well. Which of the two is shortened, the one that
    asks or the one that is asked?"""
    return in_chunks(qk, v, buckets, chunk, causal, short_queries=True)


@exercise.mistake
def left_sorted(qk, v, buckets, chunk, causal=False):
    """The results are in the order of the buckets. The caller's tokens have another order: how do
    you restore it?"""
    return in_chunks(qk, v, buckets, chunk, causal, sorted=True)


@exercise.mistake
def sorted_twice(qk, v, buckets, chunk, causal=False):
    """The results were sorted once more, where they should have gone back. `order` says which token
    is at each place; what says at which place each token is?"""
    return in_chunks(qk, v, buckets, chunk, causal, twice=True)


@exercise.mistake
def never_sorted(qk, v, buckets, chunk, causal=False):
    """The chunks were cut from the text as it came. Tokens of one bucket must come together
    first."""
    return in_chunks(qk, v, buckets, chunk, causal, unsorted=True)


stock.unscaled(exercise, "qk")
stock.ignored(
    exercise,
    "causal",
    "`causal` is accepted and never asked: later tokens are seen. In the order of the buckets, "
    "what says which of two tokens comes later in the text?",
)


@exercise.mistake
def no_peak(qk, v, buckets, chunk, causal=False):
    """Large scores give NaN: exp(90) no longer fits into a float32. What can be subtracted from all
    scores of a row without changing any weight?"""
    return in_chunks(qk, v, buckets, chunk, causal, no_peak=True)


@exercise.mistake
def peak_of_all(qk, v, buckets, chunk, causal=False):
    """The largest of all scores was subtracted in every row. A row far below it has nothing but
    zeros left, and divides 0 by 0: each row needs its own peak."""
    return in_chunks(qk, v, buckets, chunk, causal, one_peak=True)


@exercise.mistake
def hidden_with_a_number(qk, v, buckets, chunk, causal=False):
    """A token of another bucket was given the score -50. Where those of the token's own bucket
    score less than that, it gets all the weight. Which score is below every other?"""
    return in_chunks(qk, v, buckets, chunk, causal, hidden=-50.0)


@exercise.alternative
def all_chunks_at_once(qk, v, buckets, chunk, causal=False):
    return in_chunks(qk, v, buckets, chunk, causal)


@exercise.alternative
def chunk_by_chunk(qk, v, buckets, chunk, causal=False):
    n = qk.shape[-2]
    order = torch.sort(buckets, dim=-1, stable=True).indices
    x, values, own = by_words(qk, order), by_words(v, order), buckets.gather(-1, order)
    keys, places, found = F.normalize(x, dim=-1), torch.arange(n), []
    for start in range(0, n, chunk):
        rows, seen = slice(start, start + chunk), slice(max(0, start - chunk), start + chunk)
        scores = x[..., rows, :] @ keys[..., seen, :].mT / x.shape[-1] ** 0.5
        other = own[..., rows].unsqueeze(-1) != own[..., seen].unsqueeze(-2)
        if causal:
            other = other | (order[..., rows].unsqueeze(-1) < order[..., seen].unsqueeze(-2))
        # a token's own score is the lowest that there is, that of a hidden token none
        itself = places[rows].unsqueeze(-1) == places[seen]
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(itself, lowest).masked_fill(other, -torch.inf)
        found.append(scores.softmax(-1) @ values[..., seen, :])
    back = torch.zeros_like(order).scatter(-1, order, places.expand_as(order))
    return by_words(torch.cat(found, dim=-2), back)
