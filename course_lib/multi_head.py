"""Multi-head attention: look for several things at once (lesson 06)."""

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.self_attention import replaced_rule as replaced_rule  # its name of 0.2.0
from course_lib.self_attention import scaled_dot_product_attention


def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each token into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a token.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    d_model = x.shape[-1]
    if d_model % heads:
        raise ValueError(
            f"each head takes an equal part of a token, but {heads} heads do not divide "
            f"d_model = {d_model}: choose a number of heads that does"
        )
    # cut the columns into heads, and make each head a batch dimension
    return rearrange(x, "... n (heads d_k) -> ... heads n d_k", heads=heads)


def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Put the heads' parts of each token side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    # move the heads beside the columns, and join the two
    return rearrange(x, "... heads n d_k -> ... n (heads d_k)")


# `misfit` says why, and `forward` raises: `one_page` leaves an `if` that only raises out, and the
# method with it. It is static since grouped queries, in `real_models`, refuse in the same words.
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices are side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a token, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean or does not fit.
        """
        if mask is not None and (problem := self.misfit(mask, query, key)):
            raise ValueError(problem)
        # project the tokens once for all heads, and give each head its part
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        # give every head the same mask, if there is one
        if mask is not None:
            mask = rearrange(mask, "... query key -> ... 1 query key")
        # attend in all heads at once, by the layer's rule
        attended = self.rule(q, k, v, mask)
        # join the heads, and let the output matrix mix what they found
        return self.w_o(merge_heads(attended))

    @staticmethod
    def misfit(mask: Tensor, query: Tensor, key: Tensor) -> str:
        """Say what is wrong with a mask that is not boolean, or does not fit every head."""
        if mask.dtype != torch.bool:
            return (
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            return (
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )
        return ""


class AsSelfAttention(nn.Module):
    """Let tokens attend to each other: query, key and value are all x.

    `attention` is the module itself, such as a `MultiHeadAttention`.
    """

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.attention = attention

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Attend, where `mask` is True."""
        return self.attention(x, x, x, mask)


class AsCrossAttention(nn.Module):
    """Let tokens attend to what the encoder returned: the query is x, key and value are memory.

    `attention` is the module itself, as in `AsSelfAttention`.
    """

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.attention = attention

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Attend to the memory, where `mask` is True."""
        return self.attention(x, memory, memory, mask)


def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    # find the variance of one product, and add up those of all
    variance = float(d_k)
    # when scaled, let it shrink as variances do when their variable is divided
    return variance / d_k if scaled else variance


def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the parameters of multi-head attention; how many tokens there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, each column of each matrix has one more.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    # count the columns of the queries, keys and values of all heads
    columns = heads * (2 * d_k + d_v)
    # multiply by the rows, and add the output matrix
    count = d_model * columns + heads * d_v * d_model
    # add the biases of all four
    return count + columns + d_model if bias else count


def pair_weights(
    names: int,
) -> tuple[
    Float[Tensor, "d_model columns"],
    Float[Tensor, "d_model columns"],
    Float[Tensor, "d_model 2"],
    Float[Tensor, "2 2"],
]:
    """Set by hand (w_q, w_k, w_v, w_o), with which two heads fetch two numbers at once.

    A token is d_model = 3 * names + 1 numbers: its own name, the first name that it wants and the
    second, as one-hot vectors, and one number. The layer cuts x w_q, x w_k and x w_v into two
    heads, attends by scaled dot products, joins the heads, and multiplies by w_o. With these
    matrices it returns, for each token, the numbers of the tokens with the first and the second
    name that it wants, in this order, to within 0.002. This holds for any number of names up to
    300. d_k is free, d_v is 1.
    """
    w_q, w_k = torch.zeros(2, 3 * names + 1, 2 * names)
    w_v = torch.zeros(3 * names + 1, 2)
    # choose what each head's queries show of a token: columns of one head, then of the other
    w_q[names:-1] = torch.eye(2 * names)
    # choose what the keys show, in each head
    w_k[:names] = torch.eye(names).repeat(1, 2)
    # choose how large the scores are
    w_q *= 30 * names**0.5
    # choose what the values of each head hand over
    w_v[-1] = 1
    # choose where each head's number goes
    return w_q, w_k, w_v, torch.eye(2)


def attend_in_heads(
    x: Float[Tensor, "*batch n d_model"],
    w_q: Float[Tensor, "d_model d_model"],
    w_k: Float[Tensor, "d_model d_model"],
    w_v: Float[Tensor, "d_model d_model"],
    w_o: Float[Tensor, "d_model d_model"],
    heads: int,
) -> Float[Tensor, "*batch n d_model"]:
    """Return multi-head self-attention of x, without biases and without a mask.

    Head i has columns i d_k to (i + 1) d_k - 1 of w_q, w_k and w_v, and the same rows of w_o, where
    d_k = d_model / heads. Source: Vaswani et al. 2017, section 3.2.2.
    """
    # give each head its columns of the queries, keys and values
    q, k, v = (
        rearrange(x @ w, "... n (heads d_k) -> ... heads n d_k", heads=heads)
        for w in (w_q, w_k, w_v)
    )
    # attend in each head
    attended = scaled_dot_product_attention(q, k, v)
    # put the heads' results side by side
    merged = rearrange(attended, "... heads n d_k -> ... n (heads d_k)")
    # let the output matrix mix them
    return merged @ w_o


def induction_score(
    weights: Float[Tensor, "*heads n n"], tokens: Int[Tensor, " n"]
) -> Float[Tensor, "*heads"]:
    """Return how much of its weight each head gives to what followed the same token before.

    Where a token has occurred before, its query has targets: the keys right after those earlier
    copies. The score is the weight on them, averaged over the queries that have any; it is 0 where
    none has. `weights` are causal. Source: Olsson et al. 2022, who call it prefix matching.

    >>> import torch
    >>> tokens = torch.tensor([5, 7, 5])
    >>> weights = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.1, 0.6, 0.3]])
    >>> round(induction_score(weights, tokens).item(), 2)
    0.6
    """
    # mark, for each query, the earlier copies of its token
    copies = (tokens[:, None] == tokens).tril(-1)
    # mark the keys right after them
    followed = F.pad(copies, (1, 0))[:, :-1]
    # add up each query's weight on those
    found = (weights * followed).sum(-1)
    # average over the queries that have any, if there are such
    returns = copies.any(1)
    return found[..., returns].sum(-1) / returns.sum().clamp(min=1)
