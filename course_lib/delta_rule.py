"""The delta rule: a memory of fixed size that corrects what it holds (lesson 15)."""

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
