"""Attention in its final form: scores by dot product, brought to scale, weights, an average."""

import torch

from course_lib.attention import softmax
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=scaled_dot_product_attention,
    lesson="03",
    title="Compare, share out, average",
    minutes=10,
    difficulty=2,
    hints=(
        "The formula names two products, one division and one softmax. Which shape has each of "
        "the four, for 3 queries, 5 keys, d_k = 4 and d_v = 2?",
        "The mask has the shape of the scores, or can be stretched to it. Before which of the "
        "four steps does it still decide what a row of weights sums to?",
        "In a row that may look nowhere, what does torch.softmax make of nothing but minus "
        "infinities? What did your own softmax of lesson 02 make of them?",
    ),
    clauses={
        "is broadcast to the scores": "one mask for the whole batch",
        "True where a query may look": "mask_read_inverted",
        "a query that may look nowhere gets zeros": "mean_where_nothing_is_seen",
    },
    forbidden=FUSED_ATTENTION,
)


@exercise.cases
def cases(draw: Draw):
    yield "one query, two keys", (draw.normal(1, 3), draw.normal(2, 3), draw.normal(2, 4))
    yield "as many queries as keys", (draw.normal(3, 4), draw.normal(3, 4), draw.normal(3, 2))
    yield "five queries, three keys", (draw.normal(5, 2), draw.normal(3, 2), draw.normal(3, 4))
    q, k, v = draw.normal(4, 3), draw.normal(5, 3), draw.normal(5, 2)
    yield "some keys masked", (q, k, v, draw.mask(4, 5))
    nowhere = torch.tensor([[False, False, False], [True, False, True]])
    yield (
        "a query that may look nowhere",
        (draw.normal(2, 4), draw.normal(3, 4), draw.normal(3, 5), nowhere),
    )
    q, k, v = draw.normal(2, 4, 3), draw.normal(2, 6, 3), draw.normal(2, 6, 5)
    yield "one mask for the whole batch", (q, k, v, draw.mask(4, 6))
    yield "one row of mask for each sentence", (q, k, v, draw.mask(2, 1, 6))
    yield (
        "two batch dimensions, a mask for each of the first",
        (
            draw.normal(3, 2, 4, 5),
            draw.normal(3, 2, 6, 5),
            draw.normal(3, 2, 6, 2),
            draw.mask(3, 1, 4, 6),
        ),
    )
    yield "one key", (draw.normal(3, 4), draw.normal(1, 4), draw.normal(1, 2))
    yield (
        "as many queries as each has numbers",
        (draw.normal(3, 3), draw.normal(5, 3), draw.normal(5, 4)),
    )


@exercise.edges
def edges(draw: Draw):
    yield (
        "two batch dimensions, a mask for each of the second",
        (
            draw.normal(2, 2, 4, 5),
            draw.normal(2, 2, 6, 5),
            draw.normal(2, 2, 6, 3),
            draw.mask(2, 1, 6),
        ),
    )


@exercise.requires("a masked key might as well not be there, however large its score")
def masked_key(answer, draw: Draw):
    q, k, v = draw.normal(1, 4).expand(3, 4), draw.normal(5, 4), draw.normal(5, 2)
    shown = torch.tensor([True, True, False, True, False])
    k = k + 200 * torch.where(shown.unsqueeze(-1), -q[:1], q[:1])
    found = answer(q, k, v, shown.expand(3, 5))
    alone = answer(q, k[shown], v[shown])
    return found.abs().max() > 0 and torch.allclose(found, alone, atol=1e-3)


@exercise.requires("equal keys return the mean of the values")
def equal_keys(answer, draw: Draw):
    v = draw.normal(5, 2)
    found = answer(draw.normal(3, 4), draw.normal(1, 4).expand(5, 4), v)
    return torch.allclose(found, v.mean(0).expand(3, 2), atol=1e-5)


@exercise.requires("large scores give finite results")
def large_scores(answer, draw: Draw):
    found = answer(1000 * draw.normal(3, 4), draw.normal(5, 4), draw.normal(5, 2))
    return found.isfinite().all() and found.abs().max() > 0


def attend(q, k, v, mask=None, scale=None):
    return softmax(q @ k.mT / (scale or q.shape[-1] ** 0.5), mask) @ v


@exercise.mistake
def scaled_by_size(q, k, v, mask=None):
    """The scores were divided by d_k itself, which makes the weights too much alike. A sum of d_k
    independent products grows as what of d_k?"""
    return attend(q, k, v, mask, scale=q.shape[-1])


@exercise.mistake
def multiplied(q, k, v, mask=None):
    """The scores were multiplied by sqrt(d_k), where the formula divides: large scores grew
    larger."""
    return attend(q, k, v, mask, scale=q.shape[-1] ** -0.5)


@exercise.mistake
def scaled_by_keys(q, k, v, mask=None):
    """The scores were divided by the root of the number of keys. A score is one dot product: how
    many terms does it sum, and does it know how many keys there are?"""
    return attend(q, k, v, mask, scale=k.shape[-2] ** 0.5)


@exercise.mistake
def scaled_after(q, k, v, mask=None):
    """The division by sqrt(d_k) came after the softmax, so each row of weights sums to less than
    one. What was it meant to keep small?"""
    return attend(q, k, v, mask, scale=1.0) / q.shape[-1] ** 0.5


@exercise.mistake
def weights_only(q, k, v, mask=None):
    """These are the weights, one for each query and key. What do they average, and what shape does
    that have?"""
    return softmax(q @ k.mT / q.shape[-1] ** 0.5, mask)


@exercise.mistake
def nan_hidden(q, k, v, mask=None):
    """The results are right, but a query that may look nowhere has NaN as its gradient:
    `nan_to_num` hides a NaN that was made before it. Where does it arise, and can you keep it from
    arising?"""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1).nan_to_num() @ v


@exercise.mistake
def scaled_by_len(q, k, v, mask=None):
    """The scores were divided by the root of `len(q)`, which is the first axis: the number of
    queries, or of sentences in a batch. Which axis holds the numbers that a dot product sums?"""
    return attend(q, k, v, mask, scale=len(q) ** 0.5)


@exercise.mistake
def scaled_by_queries(q, k, v, mask=None):
    """The scores were divided by the root of the number of queries. A score is one dot product: how
    many terms does it sum, and does it know how many queries there are?"""
    return attend(q, k, v, mask, scale=q.shape[-2] ** 0.5)


@exercise.mistake
def half_of_d(q, k, v, mask=None):
    """The scores were divided by d_k / 2: a power binds before a division, so `d ** 1 / 2` is (d **
    1) / 2. How else can you write the exponent of a root?"""
    return attend(q, k, v, mask, scale=q.shape[-1] / 2)


@exercise.mistake
def twice_d(q, k, v, mask=None):
    """The scores were divided by 2 d_k: `scores / d ** 1 / 2` divides by d and then by 2, since a
    power binds before a division. How else can you write the exponent of a root?"""
    return attend(q, k, v, mask, scale=2 * q.shape[-1])


@exercise.mistake(raises=RuntimeError)
def keys_not_transposed(q, k, v, mask=None):
    """Queries met the keys as they lie, `q @ k`, which fits only where there are d_k keys. A dot
    product of each query with each key needs the keys as columns: what turns them over?"""
    return attend(q, k.mT, v, mask)


@exercise.mistake(raises=RuntimeError)
def weights_transposed(q, k, v, mask=None):
    """The weights were turned over before they met the values: each query took the weights that
    others gave it. A row of weights belongs to one query: what does it multiply?"""
    return softmax(q @ k.mT / q.shape[-1] ** 0.5, mask).mT @ v


@exercise.mistake
def fourth_root_once(q, k, v, mask=None):
    """The scores were divided by the fourth root of d_k. Where queries and keys are scaled apart,
    each of the two is divided by the fourth root: was one of them left out?"""
    return attend(q, k, v, mask, scale=q.shape[-1] ** 0.25)


stock.unscaled(exercise)
stock.scaled_by_values(exercise)
stock.mask_inverted(exercise)
stock.ignored(exercise)
stock.mask_as_condition(exercise)
stock.over_queries(exercise)
stock.over_axis(exercise, 1)
stock.no_softmax(exercise)
stock.masked_after(exercise)
stock.mask_added(exercise)
stock.masked_with_zero(exercise)
stock.nowhere_is_nan(exercise)
stock.nowhere_is_everywhere(exercise)
stock.unstable(exercise)
stock.over_axis(
    exercise,
    0,
    "The softmax ran over the first axis, which belongs to the queries, or to the batch. Along "
    "which axis do the keys stand?",
)
stock.exchanged(
    exercise,
    "k",
    "v",
    "Keys and values have changed places: the queries were compared with the values, and the keys "
    "were averaged. Which of the two says where to look?",
)


@exercise.mistake(raises=RuntimeError)
def transposed(q, k, v, mask=None):
    """Queries and keys have changed places in the product: the rows belong to keys, and meet the
    values with one weight for each query. Whose rows should they be?"""
    return attend(k, q, v, mask)


@exercise.mistake(raises=RuntimeError)
def mask_with_an_axis_for_heads(q, k, v, mask=None):
    """A mask of three axes was given one more at place 1, as for heads, and hides another
    sentence's keys. Axes are lined up from the right: which of the scores' axes is the mask's first
    one, as it comes?"""
    if mask is not None and mask.dim() == 3 and q.dim() == 4:
        mask = mask.unsqueeze(1)
    return attend(q, k, v, mask)


@exercise.mistake
def root_rounded_down(q, k, v, mask=None):
    """The root of d_k was rounded down to a whole number, as isqrt does: right for 4 or 64, and
    for no number between two squares."""
    root = int(q.shape[-1] ** 0.5)
    return scaled_dot_product_attention(q * (q.shape[-1] ** 0.5 / root), k, v, mask)


@exercise.alternative
def scaling_the_queries(q, k, v, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", q * q.shape[-1] ** -0.5, k)
    if mask is None:
        return torch.einsum("...qk,...kv->...qv", scores.softmax(-1), v)
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights.masked_fill(~mask, 0.0), v)


@exercise.alternative
def one_query_after_another(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / k.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    rows = []
    for row in scores.unbind(-2):
        exponentials = (row - row.amax(-1, keepdim=True).clamp(min=-1e30)).exp()
        weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30)
        rows.append((weights.unsqueeze(-1) * v).sum(-2))
    return torch.stack(rows, dim=-2)
