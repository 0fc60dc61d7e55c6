"""Lesson 02: scores, weights and averages, held against torch's, pair by pair or row by row."""

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib import attention
from course_lib.verify.comparison import Inputs, compare


@compare(attention.softmax, "`F.softmax`")
def _softmax(inputs: Inputs):
    scores = inputs.normal(*inputs.batch(), *inputs.sizes(2))
    return attention.softmax(scores), F.softmax(scores, dim=-1)


@compare(attention.softmax, "`F.softmax` of the visible keys alone, row by row")
def _masked_softmax(inputs: Inputs):
    n_q, n_k = inputs.sizes(2)
    scores, mask = inputs.normal(*inputs.batch(), n_q, n_k), inputs.mask(n_q, n_k)
    theirs = torch.zeros_like(scores)
    for i, visible in enumerate(mask):
        theirs[..., i, visible] = F.softmax(scores[..., i, visible], dim=-1)
    return attention.softmax(scores, mask), theirs


@compare(attention.dot_scores, "`torch.linalg.vecdot` of each pair")
def _dot_scores(inputs: Inputs):
    batch, (n_q, n_k, d_k) = inputs.batch(), inputs.sizes(3)
    q, k = inputs.normal(*batch, n_q, d_k), inputs.normal(*batch, n_k, d_k)
    return attention.dot_scores(q, k), torch.linalg.vecdot(*_pairs(q, k))


@compare(attention.attend, "`F.scaled_dot_product_attention(scale=1)`")
def _attend(inputs: Inputs):
    batch, (n_q, n_k, d) = inputs.batch(), inputs.sizes(3)
    queries, states = inputs.normal(*batch, n_q, d), inputs.normal(*batch, n_k, d)
    mask = inputs.mask(n_q, n_k)
    theirs = F.scaled_dot_product_attention(queries, states, states, attn_mask=mask, scale=1.0)
    return attention.attend(queries, states, mask)[0], theirs


@compare(attention.bilinear_scores, "`F.bilinear` of each pair")
def _bilinear_scores(inputs: Inputs):
    batch, (n_q, n_k, d_q, d_k) = inputs.batch(), inputs.sizes(4)
    q, k = inputs.normal(*batch, n_q, d_q), inputs.normal(*batch, n_k, d_k)
    w = inputs.normal(d_q, d_k)
    theirs = F.bilinear(*_pairs(q, k), w.unsqueeze(0)).squeeze(-1)
    return attention.bilinear_scores(q, k, w), theirs


@compare(attention.additive_scores, "`F.linear` of each pair side by side, twice")
def _additive_scores(inputs: Inputs):
    batch, (n_q, n_k, d_q, d_k, d_a) = inputs.batch(), inputs.sizes(5)
    q, k = inputs.normal(*batch, n_q, d_q), inputs.normal(*batch, n_k, d_k)
    w_q, w_k, v = inputs.normal(d_q, d_a), inputs.normal(d_k, d_a), inputs.normal(d_a)
    hidden = F.linear(torch.cat(_pairs(q, k), dim=-1), torch.cat([w_q, w_k]).mT)
    theirs = F.linear(torch.tanh(hidden), v.unsqueeze(0)).squeeze(-1)
    return attention.additive_scores(q, k, w_q, w_k, v), theirs


def _pairs(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Repeat each query for every key, and each key for every query."""
    pairs = (*q.shape[:-1], k.shape[-2], -1)
    return q.unsqueeze(-2).expand(pairs), k.unsqueeze(-3).expand(pairs)


@compare(attention.weighted_sum, "`torch.bmm`")
def _weighted_sum(inputs: Inputs):
    batch, (n_q, n_k, d_v) = inputs.batch(), inputs.sizes(3)
    weights, v = inputs.normal(*batch, n_q, n_k), inputs.normal(*batch, n_k, d_v)
    theirs = torch.bmm(weights.reshape(-1, n_q, n_k), v.reshape(-1, n_k, d_v))
    return attention.weighted_sum(weights, v), theirs.reshape(*batch, n_q, d_v)


@compare(attention.soft_lookup, "`F.scaled_dot_product_attention(scale=1 / temperature)`")
def _soft_lookup(inputs: Inputs):
    q, k, v = inputs.query_key_value()
    temperature = inputs.sizes(1)[0] / 2
    theirs = F.scaled_dot_product_attention(q, k, v, scale=1 / temperature)
    return attention.soft_lookup(q, k, v, temperature), theirs


@compare(attention.soft_lookup, "the same, with one query for each table")
def _single_lookup(inputs: Inputs):
    batch, (n_k, d_k, d_v) = inputs.batch(), inputs.sizes(3)
    query = inputs.normal(*batch, d_k)
    keys, values = inputs.normal(*batch, n_k, d_k), inputs.normal(*batch, n_k, d_v)
    theirs = F.scaled_dot_product_attention(query.unsqueeze(-2), keys, values, scale=1 / 0.7)
    return attention.soft_lookup(query, keys, values, 0.7), theirs.squeeze(-2)
