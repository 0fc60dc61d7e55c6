"""Fewer keys than queries: heads that share what they look at."""

import torch
from torch import Tensor

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.real_models import grouped_query_attention
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=grouped_query_attention,
    lesson="09",
    title="Heads that share their keys",
    minutes=10,
    difficulty=2,
    hints=(
        "With 6 query heads and 2 key heads, how many query heads share one key head? Write down "
        "for each query head, 0 to 5, which key head it looks at.",
        "Attention treats heads as it treats a batch, one beside the other. What must be the size "
        "of the keys' axis of heads, so that each query head finds its partner there?",
        "Two ways of repeating give (a, b, a, b) and (a, a, b, b). Which of them lets neighbours "
        "share?",
    ),
    clauses={
        "times fewer numbers": GIVEN,
        "is broadcast to the scores": "mask_of_the_first_head",
        "a query that may look nowhere gets zeros": "nan_where_nothing_is_seen",
    },
    forbidden=(*FUSED_ATTENTION, "course_lib.real_models.GroupedQueryAttention"),
)


@exercise.cases
def cases(draw: Draw):
    yield "two heads share one", _heads(draw, 2, 1, (1, 3, 2, 4))
    yield "four heads, two groups", _heads(draw, 4, 2, (3, 5, 4, 2))
    yield "six heads, two groups", _heads(draw, 6, 2, (2, 3, 5, 4))
    yield "a group for each head", _heads(draw, 3, 3, (4, 2, 3, 5))
    yield "one mask for all heads", (*_heads(draw, 4, 2, (3, 5, 2, 4)), draw.mask(3, 5))
    yield "a mask for each head", (*_heads(draw, 6, 3, (4, 3, 5, 2)), draw.mask(6, 4, 3))
    nowhere = torch.tensor([[False, False, False], [True, False, True]])
    yield "a query that may look nowhere", (*_heads(draw, 2, 1, (2, 3, 4, 5)), nowhere)
    yield (
        "one row of mask for each sentence",
        (*_heads(draw, 4, 2, (3, 5, 2, 6), 2), draw.mask(2, 1, 1, 5)),
    )
    yield (
        "two batch dimensions, a mask for each head",
        (*_heads(draw, 6, 2, (2, 4, 3, 5), 3, 2), draw.mask(3, 2, 6, 2, 4)),
    )
    yield "one key", _heads(draw, 4, 2, (3, 1, 2, 5))
    yield "as many queries as each has numbers", _heads(draw, 4, 2, (3, 5, 3, 2))


@exercise.edges
def edges(draw: Draw):
    empty = torch.tensor([[True, True, False, True], [False] * 4]).view(2, 1, 1, 4)
    yield "a sentence that is all padding", (*_heads(draw, 4, 2, (3, 4, 2, 5), 2), empty)
    yield (
        "a mask for each head, the same for all sentences",
        (*_heads(draw, 4, 2, (3, 5, 2, 4), 2), draw.mask(4, 3, 5)),
    )


def _heads(draw: Draw, heads, groups, sizes, *batch) -> tuple[Tensor, ...]:
    """Draw queries, keys and values; sizes are n_q, n_k, d_k, d_v."""
    n_q, n_k, d_k, d_v = sizes
    q, k = draw.normal(*batch, heads, n_q, d_k), draw.normal(*batch, groups, n_k, d_k)
    return q, k, draw.normal(*batch, groups, n_k, d_v)


@exercise.requires("neighbours that ask the same find the same, other groups find something else")
def neighbours_share(answer, draw: Draw):
    q, k, v = _heads(draw, 6, 3, (2, 4, 3, 5))
    found = answer(q[:1].expand(6, 2, 3), k, v)
    first, second = found[0::2], found[1::2]
    between = (first[:, None] - first).abs().amax((-1, -2)) > 1e-3
    return torch.allclose(first, second, atol=1e-6) and torch.equal(between, torch.eye(3) == 0)


@exercise.requires("with a group for each head this is attention as you know it")
def one_group_for_each(answer, draw: Draw):
    q, k, v = _heads(draw, 3, 3, (4, 5, 2, 6), 2)
    mask = draw.mask(4, 5)
    return torch.allclose(
        answer(q, k, v, mask), scaled_dot_product_attention(q, k, v, mask), atol=1e-5
    )


@exercise.requires("a masked key is seen by no head")
def masked_key(answer, draw: Draw):
    q, k, v = _heads(draw, 4, 2, (3, 5, 4, 2))
    shown = torch.tensor([True, True, False, True, False])
    found, alone = answer(q, k, v, shown.expand(3, 5)), answer(q, k[:, shown], v[:, shown])
    everything = answer(q, k, v)
    return torch.allclose(found, alone, atol=1e-5) and not torch.allclose(
        everything, alone, atol=1e-3
    )


def attend(q, k, v, mask=None, repeated=None):
    """Attend after `repeated(x, share)`, which shows keys and values to all heads."""
    share = _share(q, k)
    repeated = repeated or (lambda x, share: x.repeat_interleave(share, -3))
    return scaled_dot_product_attention(q, repeated(k, share), repeated(v, share), mask)


def _share(q, k):
    return q.shape[-3] // k.shape[-3]


@exercise.mistake
def dealt_in_turn(q, k, v, mask=None):
    """The key heads were dealt out in turn, (a, b, a, b), so head 1 and head 2 do not share.
    Neighbours are to share: (a, a, b, b). Which way of repeating gives that?"""
    return attend(q, k, v, mask, lambda x, share: torch.cat([x] * share, dim=-3))


@exercise.mistake
def values_in_turn(q, k, v, mask=None):
    """The keys went to neighbours, (a, a, b, b), and the values in turn, (a, b, a, b): a head finds
    by one group's keys and reads another group's values. Which heads should share both?"""
    share = _share(q, k)
    keys, values = k.repeat_interleave(share, -3), torch.cat([v] * share, dim=-3)
    return scaled_dot_product_attention(q, keys, values, mask)


@exercise.mistake(raises=RuntimeError)
def always_three(q, k, v, mask=None):
    """Each key head was repeated the same number of times, such as 3, whatever the sizes are. How
    many query heads share one, if there are `heads` of them and `groups` key heads?"""
    return attend(q, k, v, mask, lambda x, share: x.repeat_interleave(3, -3))


@exercise.mistake
def first_group_alone(q, k, v, mask=None):
    """All heads looked at the keys and values of the first group. What are the others for?"""
    return attend(q, k, v, mask, lambda x, share: x[..., :1, :, :])


@exercise.mistake
def mean_of_the_groups(q, k, v, mask=None):
    """The groups' keys and values were averaged, and all heads looked at the mean. Each head has
    one group that it looks at: which?"""
    return attend(q, k, v, mask, lambda x, share: x.mean(-3, keepdim=True))


@exercise.mistake(raises=RuntimeError)
def queries_averaged(q, k, v, mask=None):
    """The query heads of a group were averaged, so there are as many results as groups. Who is
    shared here: those that ask, or those that are looked at?"""
    asked = q.unflatten(-3, (k.shape[-3], _share(q, k))).mean(-3)
    return scaled_dot_product_attention(asked, k, v, mask)


@exercise.mistake
def one_query_for_a_group(q, k, v, mask=None):
    """The query heads of a group were averaged, and all of them have one result. Keys and values
    are shared: what does each head keep for itself?"""
    share = _share(q, k)
    mean = q.unflatten(-3, (k.shape[-3], share)).mean(-3)
    return attend(mean.repeat_interleave(share, -3), k, v, mask)


@exercise.mistake(raises=RuntimeError)
def nothing_repeated(q, k, v, mask=None):
    """Keys or values went in as they came, and their heads are fewer than the queries'. How can
    each query head find a partner of its own, among the keys and among the values?"""
    return attend(q, k, v, mask, lambda x, share: x)


@exercise.mistake(raises=RuntimeError)
def repeated_for_every_head(q, k, v, mask=None):
    """Each key head was repeated once for every query head, so there are far too many. How many
    query heads share one?"""
    return attend(q, k, v, mask, lambda x, share: x.repeat_interleave(q.shape[-3], -3))


@exercise.mistake(raises=RuntimeError)
def repeated_for_every_group(q, k, v, mask=None):
    """Each key head was repeated as many times as there are groups. How many query heads share one:
    is that the number of groups, or of heads in a group?"""
    return attend(q, k, v, mask, lambda x, share: x.repeat_interleave(x.shape[-3], -3))


@exercise.mistake(raises=RuntimeError)
def words_repeated(q, k, v, mask=None):
    """The words were repeated instead of the heads, and the heads are as few as before. Which axis,
    counted from the end, holds them?"""
    return attend(q, k, v, mask, lambda x, share: x.repeat_interleave(share, -2))


@exercise.mistake(raises=RuntimeError)
def heads_on_the_first_axis(q, k, v, mask=None):
    """Right without a batch: the heads were looked for on the first axis. Before them there may be
    sentences, so count from the end."""
    return attend(q, k, v, mask, lambda x, share: x.repeat_interleave(share, 0))


@exercise.mistake(raises=RuntimeError)
def heads_on_axis_1(q, k, v, mask=None):
    """Right with one batch dimension: the heads were looked for on axis 1. There may be none, or
    two, so count from the end."""
    return attend(q, k, v, mask, lambda x, share: x.repeat_interleave(share, 1))


stock.unscaled(exercise)
stock.scaled_by_values(exercise)
stock.ignored(exercise)
stock.mask_inverted(exercise)
stock.nowhere_is_nan(exercise)
stock.nowhere_is_everywhere(exercise)


@exercise.mistake(raises=RuntimeError)
def another_axis_for_heads(q, k, v, mask=None):
    """The mask was given an axis for the heads, and it may have one already: here it is broadcast
    to the scores (..., heads, query, key) as it comes. Which is made first, the heads or the
    mask?"""
    return attend(q, k, v, None if mask is None else mask.unsqueeze(-3))


@exercise.mistake(raises=RuntimeError)
def one_answer_for_a_group(q, k, v, mask=None):
    """The query heads of a group were averaged before they asked, so they all got one answer. Keys
    and values are shared, and queries are not."""
    share = q.shape[-3] // k.shape[-3]
    mean = q.unflatten(-3, (k.shape[-3], share)).mean(-3)
    return scaled_dot_product_attention(mean, k, v, mask).repeat_interleave(share, dim=-3)


@exercise.mistake
def mask_of_the_first_head(q, k, v, mask=None):
    """Where the mask has an axis of heads, all heads were given that of the first."""
    if mask is not None and mask.dim() > 2:
        mask = mask[..., :1, :, :]
    return grouped_query_attention(q, k, v, mask)


@exercise.alternative
def an_axis_for_those_who_share(q, k, v, mask=None):
    groups = k.shape[-3]
    q = q.unflatten(-3, (groups, -1))
    scores = torch.einsum("...gsqd,...gkd->...gsqk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.flatten(-4, -3).masked_fill(~mask, -torch.inf).view(scores.shape)
    peak = scores.amax(-1, keepdim=True).clamp(min=-1e30)
    weights = torch.exp(scores - peak)
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return torch.einsum("...gsqk,...gkd->...gsqd", weights, v).flatten(-4, -3)


@exercise.alternative
def head_after_head(q, k, v, mask=None):
    heads, share = q.size(-3), q.size(-3) // k.size(-3)
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.size(-2))
    found = []
    for head in range(heads):
        own = None if mask is None else mask[..., head, :, :]
        keys, values = k[..., head // share, :, :], v[..., head // share, :, :]
        found.append(scaled_dot_product_attention(q[..., head, :, :], keys, values, own))
    return torch.stack(found, dim=-3)
