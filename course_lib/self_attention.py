"""Self-attention: the tokens of one sentence look at each other (lesson 03)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.attention import dot_scores, softmax, weighted_sum


@runtime_checkable
class Rule(Protocol):
    """A rule of attention: a function of queries, keys, values and a mask, without parameters."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, /) -> Tensor:
        """Attend, where `mask` is True."""
        ...


@contextmanager
def replaced(owner: Any, name: str, replacement: Callable[[Any], Any]) -> Iterator[None]:
    """Let an object have `replacement(part)` in place of its part `name`, inside the block."""
    part = getattr(owner, name)
    setattr(owner, name, replacement(part))
    try:
        yield
    finally:
        setattr(owner, name, part)


def replaced_rule(layer: Any, replacement: Callable[[Rule], Rule]) -> AbstractContextManager[None]:
    """Let a layer attend by `replacement(rule)` in place of its `rule`, inside the block."""
    return replaced(layer, "rule", replacement)


def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every token average its sentence, by similarity alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    token i averages tokens 1..i only.
    """
    n = x.shape[-2]
    # compare every token with every token
    scores = dot_scores(x, x)
    # when causal, hide the tokens to the right
    mask = torch.ones(n, n, dtype=torch.bool, device=x.device).tril() if causal else None
    # average the tokens with the weights that this gives
    return weighted_sum(softmax(scores, mask), x)


def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each token its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    # multiply the tokens by each of the three matrices
    return x @ w_q, x @ w_k, x @ w_v


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    d_k = q.shape[-1]
    # score every query against every key, and divide by the root of their size
    scores = dot_scores(q, k) / d_k**0.5
    # turn scores into weights, then average the values
    return weighted_sum(softmax(scores, mask), v)


class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the tokens of x look at each other, where `mask` is True."""
        # give each token its query, its key and its value
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        # attend
        return scaled_dot_product_attention(q, k, v, mask)


def pointer_weights(
    names: int,
) -> tuple[
    Float[Tensor, "d_model d_k"],
    Float[Tensor, "d_model d_k"],
    Float[Tensor, "d_model d_v"],
]:
    """Set by hand the matrices (w_q, w_k, w_v) with which attention solves the pointer task.

    A token is d_model = 2 * names + 1 numbers: its own name as a one-hot vector, the name that it
    wants as another, and one number. With these matrices scaled dot-product attention returns, for
    each token, the number of the token whose name it wants, to within 0.002. This holds for any
    number of names up to 300. d_k is free, d_v is 1.
    """
    w_q, w_k = torch.zeros(2, 2 * names + 1, names)
    w_v = torch.zeros(2 * names + 1, 1)
    # choose what a query shows of its token, and what a key shows
    w_q[names:-1], w_k[:names] = torch.eye(names), torch.eye(names)
    # choose how large the scores are
    w_q *= 30 * names**0.5
    # choose what a value hands over
    w_v[-1] = 1
    return w_q, w_k, w_v
