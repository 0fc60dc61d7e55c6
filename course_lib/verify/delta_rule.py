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
    k, decay, erase, write = _short(k), *map(torch.sigmoid, given)
    state, rows = torch.zeros(*batch, d, d_v, dtype=q.dtype), []
    for t in range(n):
        key, value = k[..., t, :, None], v[..., t, None, :]
        keep, out, in_ = (x[..., t, None, None] for x in (decay, erase, write))
        state = keep * (torch.eye(d) - out * key @ key.mT) @ state + in_ * key @ value
        rows.append(q[..., t, None, :] @ state)
    return found, torch.cat(rows, dim=-2)


def _both(inputs: Inputs, ours, longest: int):
    batch, (n,), (d, d_v) = inputs.batch(), inputs.sizes(1, 1, longest), inputs.sizes(2)
    q, k, v = (inputs.normal(*batch, n, size) for size in (d, d, d_v))
    beta = inputs.normal(*batch, n)
    first = ours(q, _short(k), v, torch.sigmoid(beta))
    short, share = _short(k), torch.sigmoid(beta)
    state, rows = torch.zeros(*batch, d, d_v, dtype=q.dtype), []
    for t in range(n):
        key, part = short[..., t, :, None], share[..., t, None, None]
        state = (torch.eye(d) - part * key @ key.mT) @ state + part * key @ v[..., t, None, :]
        rows.append(q[..., t, None, :] @ state)
    return first, torch.cat(rows, dim=-2)


def _short(k: Tensor) -> Tensor:
    """Shorten keys to less than 1, so that the state stays small."""
    return k / (1 + k.norm(dim=-1, keepdim=True))
