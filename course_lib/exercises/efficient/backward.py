"""The backward pass of attention by tiles: weights are computed again, not kept."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.efficient.tiled import tiled_gradients
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=tiled_gradients,
    lesson="13",
    title="The backward pass, by tiles",
    minutes=10,
    difficulty=3,
    hints=(
        "A row of softmax is exp(s_ij - m_i) / l_i. You are given L_i = m_i + log(l_i). How do "
        "you get one weight from one score and L_i, without any other score of the row?",
        "Write down the four products with their shapes, for a whole matrix first. Which of them "
        "sum over keys, and which over queries? To which slice of the result does a tile add?",
        "The softmax subtracts from each dP_ij the sum over the row, sum_j P_ij dP_ij. A tile has "
        "only a part of the row. What is the same sum in terms of the output and its gradient?",
    ),
    no_edge={"a row of zeros": "`output` and `log_total` are those of the other arguments"},
    clauses={
        "where L_i": "sum_of_exponentials_alone",
        "and `output` is P V": "shift_of_a_tile",
        "Time O": "square_of_weights",
        "no tensor holds a row": "whole_rows",
        "need not divide": "a last tile that is smaller",
    },
    forbidden=(
        *FUSED_ATTENTION,
        "torch.autograd.grad",
        "torch.autograd.backward",
        "torch.Tensor.backward",
        "course_lib.efficient.kernel.attend",
    ),
    no_gradient="the results are gradients, and nobody differentiates them again",
    small_only="the sums of exponentials are given, and belong to the scores",
    # a result does not say how large its tiles were
    equivalent=("block ignored",),
)


def passed(draw: Draw, *batch: int, queries: int, keys: int, d_k: int, d_v: int, least: int = 0):
    """Draw a text, attend, and draw the gradient of the output; with `least`, of whole numbers."""
    q, k = draw.normal(*batch, queries, d_k), draw.normal(*batch, keys, d_k)
    if least:  # scores are exact then, however large they are
        q, k = (least + (x > 0).to(x) for x in (q, k))
    v, d_output = draw.normal(*batch, keys, d_v), draw.normal(*batch, queries, d_v)
    scores = q @ k.mT / d_k**0.5
    return q, k, v, scores.softmax(-1) @ v, scores.logsumexp(-1), d_output


@exercise.cases
def cases(draw: Draw):
    yield "one tile", (*passed(draw, queries=3, keys=3, d_k=2, d_v=4), 3)
    yield "two by two tiles", (*passed(draw, queries=4, keys=4, d_k=3, d_v=2), 2)
    yield "a last tile that is smaller", (*passed(draw, queries=7, keys=7, d_k=2, d_v=3), 3)
    yield "tiles of one score", (*passed(draw, queries=3, keys=4, d_k=2, d_v=2), 1)
    yield "one key", (*passed(draw, queries=1, keys=1, d_k=3, d_v=2), 2)
    yield "more keys than queries", (*passed(draw, queries=3, keys=5, d_k=4, d_v=2), 2)
    yield "a batch of texts", (*passed(draw, 2, queries=5, keys=4, d_k=3, d_v=6), 2)
    yield "two batch dimensions", (*passed(draw, 3, 2, queries=4, keys=5, d_k=2, d_v=3), 3)
    yield "as many queries as numbers", (*passed(draw, queries=4, keys=6, d_k=4, d_v=3), 4)


@exercise.edges
def edges(draw: Draw):
    # the exponential of the least of them is infinite: 4 x 7 x 7 / 2
    yield "large scores", (*passed(draw, queries=5, keys=4, d_k=4, d_v=3, least=7), 2)


def by_autograd(q, k, v, d_output):
    """Return autograd's gradients of dense attention."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(scaled_dot_product_attention(*leaves), leaves, d_output)


def close(found, wanted) -> bool:
    return all(torch.allclose(x, y, atol=1e-4) for x, y in zip(found, wanted, strict=True))


@exercise.requires("a long text never makes a tensor of n x n, and its gradients are right")
def no_square(answer, draw: Draw):
    inputs = passed(draw, queries=128, keys=128, d_k=2, d_v=3)
    found = answer(*inputs, 16, max_numel=128**2 - 1)
    return close(found, by_autograd(*inputs[:3], inputs[-1]))


@exercise.requires("a long row of weights is never there whole")
def no_row(answer, draw: Draw):
    inputs = passed(draw, queries=8, keys=256, d_k=1, d_v=1)
    found = answer(*inputs, 8, max_numel=8 * 256 - 1)
    return close(found, by_autograd(*inputs[:3], inputs[-1]))


@exercise.requires("whatever the size of a tile, the gradients are autograd's", points=2)
def any_tile(answer, draw: Draw):
    inputs = passed(draw, queries=6, keys=9, d_k=3, d_v=2)
    wanted = by_autograd(*inputs[:3], inputs[-1])
    return all(close(answer(*inputs, block), wanted) for block in (1, 2, 4, 9))


def back(q, k, v, output, log_total, d_output, block, **change):
    """Go back tile by tile, in as many ways as there are mistakes."""
    scale = q.shape[-1] ** -0.5
    d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        d_out = d_output[..., rows, :]
        shift = (d_out * output[..., rows, :]).sum(-1, keepdim=True)
        for j in range(0, k.shape[-2], change.get("keys", block)):
            keys = slice(j, j + change.get("keys", block))
            scores = scale * q[..., rows, :] @ k[..., keys, :].mT
            weights = change.get("weigh", weigh)(scores, log_total[..., rows].unsqueeze(-1))
            d_weights = d_out @ v[..., keys, :].mT
            less = {"none": 0.0, "tile": (weights * d_weights).sum(-1, keepdim=True)}
            d_scores = weights * (d_weights - less.get(change.get("shift"), shift))
            if change.get("newest"):
                d_k[..., keys, :] = d_v[..., keys, :] = 0.0
            factor = 1.0 if change.get("unscaled") else scale
            d_q[..., rows, :] += factor * d_scores @ k[..., keys, :]
            d_k[..., keys, :] += factor * d_scores.mT @ q[..., rows, :]
            d_v[..., keys, :] += (d_scores if change.get("values") else weights).mT @ d_out
    return d_q, d_k, d_v


def weigh(scores, log_total):
    return (scores - log_total).exp()


@exercise.mistake(raises=MemoryError)
def square_of_weights(q, k, v, output, log_total, d_output, block):
    """All n x n weights were there at once. How many of them does one tile have?"""
    return back(q, k, v, output, log_total, d_output, max(q.shape[-2], k.shape[-2]))


@exercise.mistake(raises=MemoryError)
def whole_rows(q, k, v, output, log_total, d_output, block):
    """Each block of queries had all of its weights at once: rows of n weights, however long the
    text. A tile has `block` keys too."""
    return back(q, k, v, output, log_total, d_output, block, keys=k.shape[-2])


@exercise.mistake
def no_shift(q, k, v, output, log_total, d_output, block):
    """The gradient of a score is P dP here, as if weights did not have to sum to one. What happens
    to the other weights of a row when one score rises?"""
    return back(q, k, v, output, log_total, d_output, block, shift="none")


@exercise.mistake
def shift_of_a_tile(q, k, v, output, log_total, d_output, block):
    """What is subtracted from dP is the sum over one tile. It runs over the whole row: which
    product of the output and its gradient is that sum?"""
    return back(q, k, v, output, log_total, d_output, block, shift="tile")


@exercise.mistake
def softmax_of_a_tile(q, k, v, output, log_total, d_output, block):
    """Each tile had a softmax of its own, so the weights of a row sum to the number of tiles. What
    is `log_total` for?"""
    again = {"weigh": lambda scores, _: scores.softmax(-1)}
    return back(q, k, v, output, log_total, d_output, block, **again)


@exercise.mistake
def sum_of_exponentials_alone(q, k, v, output, log_total, d_output, block):
    """The exponentials were divided by `log_total`. It is a logarithm: what do you do to a score
    with the logarithm of a sum, to divide its exponential by the sum?"""
    divided = {"weigh": lambda scores, log_total: scores.exp() / log_total}
    return back(q, k, v, output, log_total, d_output, block, **divided)


@exercise.mistake
def never_divided(q, k, v, output, log_total, d_output, block):
    """The exponentials of the scores are not yet weights: `log_total` was never used."""
    alone = {"weigh": lambda scores, _: scores.exp()}
    return back(q, k, v, output, log_total, d_output, block, **alone)


@exercise.mistake
def unscaled(q, k, v, output, log_total, d_output, block):
    """The gradients of q and k are too large by the root of d_k. A score is q . k divided by it: by
    the chain rule, so is what goes back."""
    return back(q, k, v, output, log_total, d_output, block, unscaled=True)


@exercise.mistake
def newest_block_of_queries(q, k, v, output, log_total, d_output, block):
    """The gradients of k and v are those of the last block of queries: what the others gave was
    overwritten. A key is seen by all queries."""
    return back(q, k, v, output, log_total, d_output, block, newest=True)


@exercise.mistake
def values_by_scores(q, k, v, output, log_total, d_output, block):
    """The gradient of v was made with the gradient of the scores. The output is P V: by what is a
    row of V multiplied?"""
    return back(q, k, v, output, log_total, d_output, block, values=True)


@exercise.mistake
def keys_first(q, k, v, output, log_total, d_output, block):
    """The gradients are there, but not in the order q, k, v: the first two have changed places."""
    d_q, d_k, d_v = back(q, k, v, output, log_total, d_output, block)
    return d_k, d_q, d_v


@exercise.alternative
def tile_by_tile(q, k, v, output, log_total, d_output, block):
    return back(q, k, v, output, log_total, d_output, block)


@exercise.alternative
def by_joined_blocks(q, k, v, output, log_total, d_output, block):
    def split(*tensors):
        return zip(*(x.split(block, dim=-2) for x in tensors), strict=True)

    shift, scale = (output * d_output).sum(-1, keepdim=True), q.shape[-1] ** 0.5
    of_q, of_k, of_v = [], 0.0, 0.0
    for queries, level, less, d_out in split(q, log_total.unsqueeze(-1), shift, d_output):
        own, parts_k, parts_v = 0.0, [], []
        for keys, values in split(k, v):
            weights = torch.exp(torch.einsum("...qd,...kd->...qk", queries, keys) / scale - level)
            d_scores = weights * (torch.einsum("...qd,...kd->...qk", d_out, values) - less) / scale
            own = own + d_scores @ keys
            parts_k.append(d_scores.mT @ queries)
            parts_v.append(weights.mT @ d_out)
        of_q.append(own)
        of_k, of_v = of_k + torch.cat(parts_k, -2), of_v + torch.cat(parts_v, -2)
    return torch.cat(of_q, dim=-2), of_k, of_v
