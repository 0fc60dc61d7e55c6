"""Linear attention: the tokens are summed up once, and every query reads the sum (lesson 14).

Time and memory for n tokens: O(n d^2) and O(n d), forward and backward; the causal form adds
O(n chunk d) to the time and O(n d^2 / chunk) to the memory.
Source: Katharopoulos et al. 2020 ("Transformers are RNNs"), sections 3.2 and 3.3.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from course_lib.efficient.kernel import spans
from course_lib.efficient.masking import (
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    read_mask,
    refuse_another_text,
)
from course_lib.efficient.variant import Variant

CHUNK_WORDS = 128  # tokens that are read at once


def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j)^T v_j, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)); yours may take more, but no tensor of n x n numbers.
    Source: Katharopoulos et al. 2020, eq. 5 and 7, and causal eq. 9.
    """
    queries, keys = F.elu(q) + 1, F.elu(k) + 1
    if causal:
        # causal: go through the tokens, each one adds itself to the sums, then reads them
        state, total, read, weights = 0.0, 0.0, [], []
        for i in range(q.shape[-2]):
            query, key, value = (x[..., i : i + 1, :] for x in (queries, keys, v))
            state, total = state + key.mT @ value, total + key
            read.append(query @ state)
            weights.append(query @ total.mT)
        sums, totals = torch.cat(read, dim=-2), torch.cat(weights, dim=-2)
    else:
        # otherwise: add up all tokens, then let every query read the sums
        sums = queries @ (keys.mT @ v)
        totals = queries @ keys.sum(-2).unsqueeze(-1)
    # divide, and leave zeros where the weights sum to 0
    return sums / totals.masked_fill(totals == 0, 1.0)


def linear_by_scan(q: Queries, k: Keys, v: Values, causal: bool = False) -> Output:
    """Attend as `linear_attention` does, chunk by chunk: fast, and O(n d) going back, too."""
    tokens = tuple(x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    # S and z side by side in one state, with nothing in it yet
    state = q.new_zeros(len(tokens[0]), q.shape[-1], v.shape[-1] + 1)
    if causal:
        output, _ = _Scan.apply(_read_and_add, state, *tokens)
    else:
        _, state = _Scan.apply(_add, state, *tokens[1:])
        output, _ = _Scan.apply(_read, state, tokens[0])
    return output.view(v.shape)


def linear_attention_in_chunks(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    chunk: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend causally, a chunk of tokens at a time: o_i = phi(q_i) S_i / phi(q_i) . z_i.

    phi(x) = elu(x) + 1; S_i and z_i are sums over all j <= i. Inside a chunk the weights are
    computed as a small square; between chunks only S and z are handed on. Any chunk length gives
    the same result; the last chunk may be shorter. Time O(n (chunk + d) d), in n / chunk steps.
    Source: Katharopoulos et al. 2020, eq. 9; in chunks: Yang et al. 2024, section 2.
    """
    queries, keys = F.elu(q) + 1, F.elu(k) + 1
    state = q.new_zeros(*q.shape[:-2], q.shape[-1], v.shape[-1])
    total = torch.zeros_like(q[..., 0, :])
    outputs = []
    for start in range(0, q.shape[-2], chunk):
        q_now, k_now, v_now = (x[..., start : start + chunk, :] for x in (queries, keys, v))
        # weigh the tokens of this chunk, none after the query
        weights = (q_now @ k_now.mT).tril()
        # sum up the weights, of earlier chunks and of this one
        sums = (q_now * total.unsqueeze(-2)).sum(-1) + weights.sum(-1)
        # read the state of earlier chunks, and this chunk's own values
        found = q_now @ state + weights @ v_now
        outputs.append(found / sums.unsqueeze(-1))
        # add this chunk to the state
        state, total = state + k_now.mT @ v_now, total + k_now.sum(-2)
    return torch.cat(outputs, dim=-2)


def _features(x: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
    """Make queries and keys positive: phi(x) = elu(x) + 1. Source: the same, eq. 7."""
    return F.elu(x) + 1


def _read_and_add(state: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Let each token of a chunk read the state, and the tokens of the chunk up to itself."""
    q, k, values = _features(q), _features(k), _with_ones(v)
    return _divide(q @ state + (q @ k.mT).tril() @ values), state + k.mT @ values


def _read(state: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    return _divide(_features(q) @ state), state


def _add(state: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return v[..., :0], state + _features(k).mT @ _with_ones(v)


def _with_ones(v: Tensor) -> Tensor:
    """Put a one beside each value: where the values are summed, it sums the weights."""
    return F.pad(v, (0, 1), value=1.0)


def _divide(sums: Tensor) -> Tensor:
    total = sums[..., -1:]
    return sums[..., :-1] / total.masked_fill(total == 0, 1.0)


class _Scan(torch.autograd.Function):
    """Go through the tokens chunk by chunk: step(state, *chunks) returns (result, next state).

    Nothing is kept but the states; going back, each chunk is computed again.
    """

    @staticmethod
    def forward(ctx, step: Callable, state: Tensor, *tokens: Tensor):
        states, results = [], []
        for rows in spans(tokens[0].shape[-2], CHUNK_WORDS):
            states.append(state)
            result, state = step(state, *(x[:, rows] for x in tokens))
            results.append(result)
        ctx.step, ctx.count = step, len(tokens)
        ctx.save_for_backward(*tokens, *states)
        return torch.cat(results, dim=-2), state.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, d_results: Tensor, d_state: Tensor):
        tokens, states = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        d_words = [torch.empty_like(x) for x in tokens]
        for rows, state in zip(
            spans(tokens[0].shape[-2], CHUNK_WORDS)[::-1], states[::-1], strict=True
        ):
            chunks = [x[:, rows] for x in tokens]
            inputs = [x.detach().requires_grad_() for x in (state, *chunks)]
            with torch.enable_grad():
                outputs = ctx.step(*inputs)
            d_state, *d_chunks = torch.autograd.grad(outputs, inputs, (d_results[:, rows], d_state))
            for d_x, d_chunk in zip(d_words, d_chunks, strict=True):
                d_x[:, rows] = d_chunk
        return None, d_state, *d_words


def rule(q: Queries, k: Keys, v: Values, mask: Mask = None, *, causal: bool = False) -> Output:
    """Read the sum of all tokens, or of those before: elu + 1 in the place of the softmax."""
    refuse_another_text(q, k)
    real, causal = read_mask(mask, q, k, causal)
    if real is not None:
        # where the feature of a key is 0, it has no weight
        k = k.masked_fill(~real.unsqueeze(-1), float("-inf"))
    return linear_by_scan(q, k, v, causal)


VARIANT = Variant(
    name="linear",
    function=linear_attention,
    rule=rule,
    twin="its n x n weights, made and divided by their sums",
    example=lambda n, d_k: {},
    experiment=lambda n, d_k: {},
    benchmark=lambda n, d_k: {},
    causal=True,
)
