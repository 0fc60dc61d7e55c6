"""Attention: compare a query with keys, then average the values (lesson 02)."""

import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float
from torch import Tensor


def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: a_j = exp(e_j) / sum_l exp(e_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    # a key that may not be looked at gets the score minus infinity
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    # subtract the largest score of the row, which changes no weight but keeps exp finite
    peak = reduce(scores.detach(), "... key -> ... 1", "max")
    exponentials = torch.exp(scores - peak.masked_fill(peak == float("-inf"), 0.0))
    # divide by the sum of the row; a fully masked row has the sum 0 and stays 0
    total = reduce(exponentials, "... key -> ... 1", "sum")
    return exponentials / total.masked_fill(total == 0, 1.0)


def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: e_ij = q_i . k_j.

    Source: Luong et al. 2015, section 3.1 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    # multiply each query with each key, and sum over their common axis
    return einsum(q, k, "... query d_k, ... key d_k -> ... query key")


def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: e_ij = q_i W k_j^T.

    Source: Luong et al. 2015, section 3.1 ("general").
    """
    # carry the queries into the space of the keys, then take dot products
    return dot_scores(q @ w, k)


def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: e_ij = tanh(q_i W_q + k_j W_k) . v.

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    # bring queries and keys to the same size
    queries, keys = q @ w_q, k @ w_k
    # add every query to every key
    pairs = queries.unsqueeze(-2) + keys.unsqueeze(-3)
    # squash each sum, and weigh its entries by v
    return torch.tanh(pairs) @ v


def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j a_ij v_j."""
    # multiply each value by its weight, and sum over the keys
    return einsum(weights, v, "... query key, ... key d_v -> ... query d_v")


def attend(
    queries: Float[Tensor, "... query d"],
    states: Float[Tensor, "... key d"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> tuple[Float[Tensor, "... query d"], Float[Tensor, "... query key"]]:
    """Look at the encoder's states, once for each query; return (contexts, weights).

    The states are keys and values at once. Scores are dot products, without a scale. Where `mask`
    is False a state has the weight 0.

    Source: Luong et al. 2015, section 3.1 (global attention).
    """
    # score every query against every state
    scores = dot_scores(queries, states)
    # turn scores into weights, 0 where the mask is False
    weights = softmax(scores, mask)
    # average the states with these weights
    return weighted_sum(weights, states), weights


def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) per table. As the temperature falls, the weight
    gathers on the key with the highest score, and the result tends to a hard lookup.
    """
    # treat one query as a list of one
    single = query.dim() < keys.dim()
    queries = query.unsqueeze(-2) if single else query
    # score the queries against the keys; a low temperature makes differences large
    weights = softmax(dot_scores(queries, keys) / temperature)
    # average the values with these weights
    looked_up = weighted_sum(weights, values)
    return looked_up.squeeze(-2) if single else looked_up
