"""Memories of fixed size: the delta rule, and the one equation that it shares with others (15)."""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

CHUNK = 32  # tokens that `delta_rule_in_chunks` reads at once


def delta_rule(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    beta: Float[Tensor, "... n"],
) -> Float[Tensor, "... n d_v"]:
    """Store values under keys in one matrix, and replace what a key had stored before.

    S_t = S_(t-1) + beta_t k_t (v_t - k_t S_(t-1)) and o_t = q_t S_t, with k_t as a column in the
    first place; S is `(d, d_v)`, of zeros before the first token. For a key of length 1 and beta 1,
    k_t S_t is v_t exactly. Time O(n d d_v), in n steps; memory of the state O(d d_v), whatever n.
    Source: Schlag et al. 2021, section 4.2, without their feature map; Yang et al. 2024, section 2.
    """
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    outputs = []
    for t in range(q.shape[-2]):
        # ask the state what it holds under this key
        held = einsum(k[..., t, :], state, "... d, ... d d_v -> ... d_v")
        # compare with the value that it should hold, and write a share of the difference
        change = beta[..., t, None] * (v[..., t, :] - held)
        state = state + einsum(k[..., t, :], change, "... d, ... d_v -> ... d d_v")
        # read by the query
        outputs.append(einsum(q[..., t, :], state, "... d, ... d d_v -> ... d_v"))
    return torch.stack(outputs, dim=-2)


def delta_rule_in_chunks(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    beta: Float[Tensor, "... n"],
) -> Float[Tensor, "... n d_v"]:
    """Compute what `delta_rule` does, chunk by chunk: matrix products in the place of steps.

    Time O(n (chunk + d) d_v) in n / chunk steps. Inside a chunk, the changes u_t that the tokens
    write solve u_t + beta_t sum_(j < t) (k_t . k_j) u_j = beta_t (v_t - k_t S), a triangular system
    of linear equations. Source: Yang et al. 2024, section 3.
    """
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    outputs = []
    chunks = (x.split(CHUNK, dim=-2) for x in (q, k, v, beta.unsqueeze(-1)))
    for q_now, k_now, v_now, share in zip(*chunks, strict=True):
        # solve for what each token of the chunk writes
        earlier = (share * k_now @ k_now.mT).tril(-1)
        change = torch.linalg.solve_triangular(
            earlier, share * (v_now - k_now @ state), upper=False, unitriangular=True
        )
        # read the state before the chunk, and what the chunk has written up to each token
        outputs.append(q_now @ state + (q_now @ k_now.mT).tril() @ change)
        state = state + k_now.mT @ change
    return torch.cat(outputs, dim=-2)


def matrix_memory(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    decay: Float[Tensor, "... n"],
    erase: Float[Tensor, "... n"],
    write: Float[Tensor, "... n"],
) -> Float[Tensor, "... n d_v"]:
    """Store values under keys in one matrix that decays, erases and writes.

    S_t = decay_t (S_(t-1) - erase_t k_t k_t^T S_(t-1)) + write_t k_t v_t^T and o_t = S_t^T q_t,
    with vectors as columns; S is `(d, d_v)`, of zeros before the first token. With decay 1 and
    erase 0 it is linear attention without a normaliser, with erase = write = beta the delta rule,
    gated where it also decays. Time O(n d d_v), in n steps; memory of the state O(d d_v), whatever
    n. Source: Yang et al. 2025 (the gated delta rule), section 3.
    """
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    outputs = []
    for t in range(q.shape[-2]):
        key = k[..., t, :]
        # let the whole memory decay
        state = decay[..., t, None, None] * state
        # ask what is left under this key
        held = einsum(key, state, "... d, ... d d_v -> ... d_v")
        # write the new value, and take the old one out
        change = write[..., t, None] * v[..., t, :] - erase[..., t, None] * held
        state = state + einsum(key, change, "... d, ... d_v -> ... d d_v")
        # read by the query
        outputs.append(einsum(q[..., t, :], state, "... d, ... d d_v -> ... d_v"))
    return torch.stack(outputs, dim=-2)


def matrix_memory_at_once(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    decay: Float[Tensor, "... n"],
    erase: Float[Tensor, "... n"],
    write: Float[Tensor, "... n"],
) -> Float[Tensor, "... n d_v"]:
    """Compute what `matrix_memory` does without a loop, for short texts and decays above 0.

    What token j wrote has decayed by g_tj, the product of the decays from j + 1 to t, when token t
    comes. The changes u_t solve u_t + erase_t sum_(j < t) g_tj (k_t . k_j) u_j = write_t v_t, a
    triangular system. Time O(n^2 (d + d_v)). Source: Yang et al. 2025, section 3.
    """
    logs = decay.log().cumsum(-1)
    faded = (logs.unsqueeze(-1) - logs.unsqueeze(-2)).tril().exp()
    # solve for what each token changes
    earlier = (erase.unsqueeze(-1) * faded * (k @ k.mT)).tril(-1)
    change = torch.linalg.solve_triangular(
        earlier, write.unsqueeze(-1) * v, upper=False, unitriangular=True
    )
    # read all that has been changed so far, as far as it has decayed
    return (faded * (q @ k.mT)).tril() @ change
