"""Multi-head attention in one function, with a fault to be mended."""

import torch
from einops import rearrange

from course_lib.checking.exercise import Draw, Exercise
from course_lib.multi_head import attend_in_heads, merge_heads, split_heads
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=attend_in_heads,
    lesson="06",
    title="Find the bug: the shapes are right",
    minutes=6,
    difficulty=2,
    hints=(
        "The cases with one head pass, and those with one token. What happens only where there "
        "are several of both?",
        "Take two tokens, two heads and d_k = 1, and write down what each line returns, number by "
        "number. Which numbers of `attended` belong to token 1, and where are they afterwards?",
    ),
)


def drawn(draw: Draw, n, heads, d_k, *batch):
    """Draw tokens and four matrices."""
    d_model = heads * d_k
    matrices = (draw.normal(d_model, d_model) / d_model**0.5 for _ in range(4))
    return draw.normal(*batch, n, d_model), *matrices, heads


@exercise.cases
def cases(draw: Draw):
    yield "one head", drawn(draw, 3, 1, 4)
    yield "one token", drawn(draw, 1, 3, 2)
    yield "two tokens, two heads", drawn(draw, 2, 2, 2)
    yield "five tokens, three heads", drawn(draw, 5, 3, 4)
    yield "a head for each column", drawn(draw, 3, 4, 1)
    yield "as many tokens as each has numbers", drawn(draw, 6, 2, 3)
    yield "a batch of sentences", drawn(draw, 4, 2, 3, 3)
    yield "two batch dimensions", drawn(draw, 3, 2, 2, 2, 2)


@exercise.requires("tokens in another order give the same outputs in that order")
def no_order(answer, draw: Draw):
    x, *rest = drawn(draw, 4, 2, 3)
    order = torch.tensor([2, 0, 3, 1])
    return torch.allclose(answer(x[order], *rest), answer(x, *rest)[order], atol=1e-5)


@exercise.requires("what a head found does not reach the output where its rows of w_o are 0")
def a_head_off(answer, draw: Draw):
    x, w_q, w_k, w_v, w_o, heads = drawn(draw, 4, 2, 3)
    w_o[:3] = 0
    other = w_v.clone()
    other[:, :3] += 1
    plain = answer(x, w_q, w_k, w_v, w_o, heads)
    return plain.any() and torch.allclose(plain, answer(x, w_q, w_k, other, w_o, heads), atol=1e-5)


@exercise.hand_out
def joined_as_they_lie(x, w_q, w_k, w_v, w_o, heads):
    """The fault was the reshape: it joined the heads' numbers as they lie in memory, head 1's
    tokens first, so that a row of the result held numbers of several tokens. The axis of heads must
    first move beside the columns."""
    # give each head its columns of the queries, keys and values
    q, k, v = (
        rearrange(x @ w, "... n (heads d_k) -> ... heads n d_k", heads=heads)
        for w in (w_q, w_k, w_v)
    )
    # attend in each head
    attended = scaled_dot_product_attention(q, k, v)
    # put the heads' results side by side
    merged = attended.reshape(x.shape)
    # let the output matrix mix them
    return merged @ w_o


def parts(x, w_q, w_k, w_v, heads):
    """Return the heads' queries, keys and values."""
    return (split_heads(x @ w, heads) for w in (w_q, w_k, w_v))


@exercise.mistake
def columns_in_turn(x, w_q, w_k, w_v, w_o, heads):
    """Each token has its own numbers now, but the columns of the heads take turns. The rows of w_o
    expect all columns of head 1 first."""
    attended = scaled_dot_product_attention(*parts(x, w_q, w_k, w_v, heads))
    return rearrange(attended, "... heads n d_k -> ... n (d_k heads)") @ w_o


@exercise.mistake
def columns_in_turn_twice(x, w_q, w_k, w_v, w_o, heads):
    """Head i has every h-th column, from column i on. The docstring gives it the columns i d_k to
    (i + 1) d_k - 1: the way in was right before."""
    cut = (
        rearrange(x @ w, "... n (d_k heads) -> ... heads n d_k", heads=heads)
        for w in (w_q, w_k, w_v)
    )
    attended = scaled_dot_product_attention(*cut)
    return rearrange(attended, "... heads n d_k -> ... n (d_k heads)") @ w_o


@exercise.mistake
def split_as_they_lie(x, w_q, w_k, w_v, w_o, heads):
    """The heads are cut by a reshape too now. The way in was right: only the way out was not."""
    q, k, v = ((x @ w).reshape(*x.shape[:-2], heads, x.shape[-2], -1) for w in (w_q, w_k, w_v))
    return scaled_dot_product_attention(q, k, v).reshape(x.shape) @ w_o


@exercise.mistake
def unmixed(x, w_q, w_k, w_v, w_o, heads):
    """The heads are side by side as they should be, and the output matrix is not used any more."""
    return merge_heads(scaled_dot_product_attention(*parts(x, w_q, w_k, w_v, heads)))


@exercise.mistake
def one_head(x, w_q, w_k, w_v, w_o, heads):
    """The tokens are not cut any more: this is one head as wide as a token."""
    return scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v) @ w_o


@exercise.alternative
def moved_first(x, w_q, w_k, w_v, w_o, heads):
    attended = scaled_dot_product_attention(*parts(x, w_q, w_k, w_v, heads))
    return attended.transpose(-3, -2).flatten(-2) @ w_o


@exercise.alternative
def a_sum_over_heads(x, w_q, w_k, w_v, w_o, heads):
    total = torch.zeros_like(x)
    for columns in torch.arange(x.shape[-1]).chunk(heads):
        q, k, v = (x @ w[:, columns] for w in (w_q, w_k, w_v))
        total = total + scaled_dot_product_attention(q, k, v) @ w_o[columns]
    return total
