"""Lesson 15: the delta rule, held against products of matrices."""

import torch
from torch import Tensor

from course_lib import delta_rule
from course_lib.verify.comparison import Inputs, compare


@compare(delta_rule.delta_rule, "S_t = (I - beta_t k_t k_t^T) S_(t-1) + beta_t k_t v_t^T")
def _delta_rule(inputs: Inputs):
    return _both(inputs, delta_rule.delta_rule, longest=6)


@compare(delta_rule.delta_rule_in_chunks, "the same")
def _in_chunks(inputs: Inputs):
    return _both(inputs, delta_rule.delta_rule_in_chunks, longest=70)


@compare(delta_rule.matrix_memory, "products of matrices, which decay last")
def _matrix_memory(inputs: Inputs):
    return _memories(inputs, delta_rule.matrix_memory)


@compare(delta_rule.matrix_memory_at_once, "the same")
def _at_once(inputs: Inputs):
    return _memories(inputs, delta_rule.matrix_memory_at_once)


def _memories(inputs: Inputs, ours):
    batch, (n,), (d, d_v) = inputs.batch(), inputs.sizes(1, 1, 9), inputs.sizes(2)
    q, k, v = (inputs.normal(*batch, n, size) for size in (d, d, d_v))
    given = [inputs.normal(*batch, n) for _ in range(3)]
    found = ours(q, _short(k), v, *map(torch.sigmoid, given))
    return found, _by_products(q, _short(k), v, *map(torch.sigmoid, given))


def _both(inputs: Inputs, ours, longest: int):
    batch, (n,), (d, d_v) = inputs.batch(), inputs.sizes(1, 1, longest), inputs.sizes(2)
    q, k, v = (inputs.normal(*batch, n, size) for size in (d, d, d_v))
    beta = inputs.normal(*batch, n)
    found, share = ours(q, _short(k), v, torch.sigmoid(beta)), torch.sigmoid(beta)
    return found, _by_products(q, _short(k), v, torch.ones_like(share), share, share)


def _by_products(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, erase: Tensor, write: Tensor
) -> Tensor:
    """Multiply the state by decay (I - erase k k^T), a matrix, and add write k v^T."""
    (*batch, n, d), d_v = q.shape, v.shape[-1]
    state, rows = torch.zeros(*batch, d, d_v, dtype=q.dtype), []
    for t in range(n):
        key, value = k[..., t, :, None], v[..., t, None, :]
        keep, out, in_ = (x[..., t, None, None] for x in (decay, erase, write))
        state = keep * (torch.eye(d) - out * key @ key.mT) @ state + in_ * key @ value
        rows.append(q[..., t, None, :] @ state)
    return torch.cat(rows, dim=-2)


def _short(k: Tensor) -> Tensor:
    """Shorten keys to less than 1, so that the state stays small."""
    return k / (1 + k.norm(dim=-1, keepdim=True))
