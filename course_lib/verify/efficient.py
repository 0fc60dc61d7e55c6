"""Lessons 13 and 14: efficient attention, held against dense attention under the same mask."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib.efficient import (
    bigbird,
    chosen_blocks,
    kernel,
    linear,
    linformer,
    lsh,
    memory_compressed,
    plan,
    reversible,
    tiled,
    window,
)
from course_lib.efficient.variants import VARIANTS
from course_lib.verify.comparison import Comparison, Inputs, compare


def twin(name: str, oracle: str | None = None) -> Callable[[Callable], Comparison]:
    """Hold the variant of this name against the naive twin below.

    The twin returns the arguments that it drew, and what it makes of them. `oracle` is the table's,
    unless the twin is one of a special case.
    """
    variant = VARIANTS[name]

    def hold(naive: Callable[[Inputs], tuple[tuple, Tensor]]) -> Comparison:
        def results(inputs: Inputs) -> tuple[Tensor, Tensor]:
            arguments, theirs = naive(inputs)
            return variant.function(*arguments), theirs

        return compare(variant.function, oracle or variant.twin)(results)

    return hold


@twin("window")
def _window(inputs: Inputs):
    (width,) = inputs.sizes(1, 0, 9)
    # more words than one tile has queries
    q, k, v = _words(inputs, *inputs.sizes(1, 60, 140))
    n = q.shape[-2]
    near = [[-(width // 2) <= i - j <= width // 2 for j in range(n)] for i in range(n)]
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor(near))
    return (q, k, v, width), theirs


@compare(window.window_by_kernel, "`window_attention`")
def _window_by_kernel(inputs: Inputs):
    (width,) = inputs.sizes(1, 0, 9)
    arguments = (*_words(inputs, *inputs.sizes(1, 60, 140)), width)
    return window.window_by_kernel(*arguments), window.window_attention(*arguments)


@compare(window.attend_back, "the same, the words before alone")
def _attend_back(inputs: Inputs):
    (reach,) = inputs.sizes(1, 0, 9)
    q, k, v = _words(inputs, *inputs.sizes(1, 60, 140))
    n = q.shape[-2]
    before = torch.tensor([[0 <= i - j <= reach for j in range(n)] for i in range(n)])
    return window.attend_back(q, k, v, reach), F.scaled_dot_product_attention(
        q, k, v, attn_mask=before
    )


@twin("BigBird")
def _bigbird(inputs: Inputs):
    return _listed(inputs, causal=False)


@compare(bigbird.bigbird_by_kernel, "`bigbird_attention`")
def _bigbird_by_kernel(inputs: Inputs):
    arguments, _ = _listed(inputs, causal=False)
    return bigbird.bigbird_by_kernel(*arguments), bigbird.bigbird_attention(*arguments)


@compare(bigbird.attend_back, "the same, the words before alone")
def _bigbird_back(inputs: Inputs):
    arguments, theirs = _listed(inputs, causal=True)
    return bigbird.attend_back(*arguments), theirs


def _listed(inputs: Inputs, causal: bool):
    blocks, block, longest = inputs.sizes(3, 2, 9)
    q, k, v = _words(inputs, blocks * block)
    listed = [set(inputs.sizes(longest, -1, blocks - 1)) for _ in range(blocks)]
    # one row has every block, another none
    listed[0], listed[1] = set(range(blocks)), set()
    neighbours = torch.tensor([[*row, *[-1] * (20 - len(row))] for row in listed])
    seen = [[j // block in row for j in range(blocks * block)] for row in listed]
    mask = torch.tensor(seen).repeat_interleave(block, dim=0)
    mask = mask.tril() if causal else mask
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return (q, k, v, neighbours, block), theirs


@twin("Linformer")
def _linformer(inputs: Inputs):
    n, k_size = inputs.sizes(2, 1, 140)
    (q, k, v), (e, f) = _words(inputs, n), (inputs.normal(n, k_size) for _ in range(2))
    keys, values = (F.linear(x.mT, w.mT).mT for x, w in ((k, e), (v, f)))
    return (q, k, v, e, f), F.scaled_dot_product_attention(q, keys, values)


@compare(linformer.linformer_by_kernel, "`linformer_attention`")
def _linformer_by_kernel(inputs: Inputs):
    n, k_size = inputs.sizes(2, 1, 140)
    arguments = (*_words(inputs, n), *(inputs.normal(n, k_size) for _ in range(2)))
    return linformer.linformer_by_kernel(*arguments), linformer.linformer_attention(*arguments)


@compare(lsh.draw_rotations, "`torch.randn` of the same seed")
def _draw_rotations(inputs: Inputs):
    d, half, seed = inputs.sizes(3)
    x, generator = inputs.normal(d), torch.Generator().manual_seed(seed)
    theirs = x @ torch.randn(d, half, generator=generator).double()
    return x @ lsh.draw_rotations(d, 2 * half, seed).double(), theirs


@twin("LSH")
def _lsh(inputs: Inputs):
    (qk, v, [own], chunk), theirs = _lsh_rounds(inputs, rounds=1, causal=False)
    return (qk, v, own, chunk), theirs


@twin("LSH", "the same, causal")
def _causal_lsh(inputs: Inputs):
    (qk, v, [own], chunk), theirs = _lsh_rounds(inputs, rounds=1, causal=True)
    return (qk, v, own, chunk, True), theirs


@compare(lsh.lsh_attention_in_rounds, "the same, of the pairs that any round shows")
def _lsh_in_rounds(inputs: Inputs):
    arguments, theirs = _lsh_rounds(inputs, rounds=3, causal=False)
    return lsh.lsh_attention_in_rounds(*arguments), theirs


@compare(lsh.lsh_attention_in_rounds, "the same, causal")
def _causal_lsh_in_rounds(inputs: Inputs):
    arguments, theirs = _lsh_rounds(inputs, rounds=3, causal=True)
    return lsh.lsh_attention_in_rounds(*arguments, causal=True), theirs


def _lsh_rounds(
    inputs: Inputs, rounds: int, causal: bool
) -> tuple[tuple[Tensor, Tensor, Tensor, int], Tensor]:
    """Draw words and the buckets of each round, and attend pair by pair."""
    chunks, chunk, d_k, d_v, buckets = inputs.sizes(5)
    n = chunks * chunk
    qk, v = inputs.normal(n, d_k), inputs.normal(n, d_v)
    own = torch.tensor([inputs.sizes(n, 1, buckets) for _ in range(rounds)])
    seen = [set() for _ in range(n)]
    for bucket in own.tolist():
        in_order = sorted(range(n), key=bucket.__getitem__)
        for place, i in enumerate(in_order):
            start = place // chunk * chunk
            near = in_order[max(0, start - chunk) : start + chunk]
            seen[i] |= {j for j in near if bucket[j] == bucket[i] and j != i}
    theirs = []
    for i, others in enumerate(seen):
        visible = [j for j in others if j < i or not causal] or [i]
        keys = qk[visible] / qk[visible].norm(dim=-1, keepdim=True)
        theirs.append(F.softmax(keys @ qk[i] / d_k**0.5, dim=-1) @ v[visible])
    return (qk, v, own, chunk), torch.stack(theirs)


@compare(reversible.ReversibleBlock, "its two sums, and `inverse` undone")
def _reversible_block(inputs: Inputs):
    n, half = inputs.sizes(2)
    x, w = inputs.normal(*inputs.batch(), n, 2 * half), inputs.normal(half, half)
    block = reversible.ReversibleBlock(lambda x: torch.tanh(x @ w), torch.sin)
    left = x[..., :half] + torch.tanh(x[..., half:] @ w)
    theirs = torch.cat([left, x[..., half:] + left.sin()], dim=-1)
    return (block(x), block.inverse(block(x))), (theirs, x * 1)


@compare(reversible.ReversibleSequence, "`nn.Sequential` of the blocks")
def _reversible_sequence(inputs: Inputs):
    (n, half), (layers,) = inputs.sizes(2), inputs.sizes(1)
    x = inputs.normal(*inputs.batch(), n, 2 * half)
    blocks = [
        reversible.ReversibleBlock(nn.Sequential(nn.Linear(half, half), nn.Tanh()), torch.sin)
        for _ in range(layers)
    ]
    names = dict(nn.Sequential(*blocks).named_parameters())
    weights = {name: inputs.normal(*weight.shape) for name, weight in names.items()}
    ours = {f"blocks.{name}": weight for name, weight in weights.items()}
    theirs = functional_call(nn.Sequential(*blocks), weights, x)
    return functional_call(reversible.ReversibleSequence(blocks), ours, x), theirs


@twin("tiled")
def _tiled(inputs: Inputs):
    n, block = inputs.sizes(2, 1, 30)
    q, k, v = _words(inputs, n)
    return (q, k, v, block), F.scaled_dot_product_attention(q, k, v)


@compare(tiled.tiled_by_kernel, "`tiled_attention`")
def _tiled_by_kernel(inputs: Inputs):
    n, block = inputs.sizes(2, 1, 30)
    arguments = (*_words(inputs, n), block)
    return tiled.tiled_by_kernel(*arguments), tiled.tiled_attention(*arguments)


@compare(tiled.tiled_gradients, "`torch.autograd.grad` of dense attention")
def _tiled_gradients(inputs: Inputs):
    q, k, v = leaves = inputs.query_key_value()
    scores = q @ k.mT / q.shape[-1] ** 0.5
    output = F.scaled_dot_product_attention(q, k, v)
    d_output, (block,) = inputs.normal(*output.shape), inputs.sizes(1)
    theirs = torch.autograd.grad(scores.softmax(-1) @ v, leaves, d_output, create_graph=True)
    log_total = (q @ k.mT / q.shape[-1] ** 0.5).logsumexp(-1)
    return tiled.tiled_gradients(*leaves, output, log_total, d_output, block), theirs


@compare(chosen_blocks.choose_blocks, "`sorted`, query by query")
def _choose_blocks(inputs: Inputs):
    blocks, block, d, chosen = inputs.sizes(4)
    q, k = inputs.normal(blocks * block, d), inputs.normal(blocks * block, d)
    theirs = torch.zeros(blocks * block, blocks, dtype=torch.float64)
    for i, query in enumerate(q):
        own = i // block
        fit = [(query @ k[b * block : (b + 1) * block].mean(0), b) for b in range(own)]
        theirs[i, [own, *(b for _, b in sorted(fit, reverse=True)[:chosen])]] = 1
    listed = chosen_blocks.choose_blocks(q, k, block, chosen)
    ours = torch.zeros(blocks * block, blocks + 1, dtype=torch.float64).scatter_(
        -1, listed % (blocks + 1), 1
    )
    return ours[:, :-1] + 0 * (q.sum() + k.sum()), theirs + 0 * (q.sum() + k.sum())


@compare(kernel.attend, "`F.scaled_dot_product_attention`, `torch.logsumexp`")
def _attend(inputs: Inputs):
    q, k, v = inputs.query_key_value()
    rows, keys = (kernel.spans(x.shape[-2], 2) for x in (q, k))
    mask = torch.zeros(q.shape[-2], k.shape[-2], dtype=torch.bool)
    tiles = []
    for row in rows:
        for key in keys:
            if inputs.sizes(1) > [2]:
                mask[row, key] = inputs.mask(2, 2)[: row.stop - row.start, : key.stop - key.start]
                tiles.append((row, [key], mask[row, key]))
    # compare the logarithms of the rows that see something
    some = mask.any(-1)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    output, log_total = kernel.attend(q, k, v, tiles)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return (
        torch.cat([output.flatten(), log_total[..., some].flatten()]),
        torch.cat([theirs.flatten(), scores[..., some, :].logsumexp(-1).flatten()]),
    )


@compare(plan.attend_by_plan, "`F.scaled_dot_product_attention`")
def _attend_by_plan(inputs: Inputs):
    q, k, v = inputs.query_key_value()
    n, keys = q.shape[-2], k.shape[-2]
    mask = inputs.mask(n, keys)
    mask[..., 0] = True  # each query sees a key
    tiles = [(i, min(i + 2, keys), mask[..., i : i + 2]) for i in range(0, keys, 2)]
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return plan.attend_by_plan(q, k, v, [(0, n, tiles)]), theirs


@compare(memory_compressed.compress, "`F.conv1d`")
def _compress(inputs: Inputs):
    n, width, stride, d_in, d_out = inputs.sizes(5)
    x, weight = inputs.normal(*inputs.batch(), n, d_in), inputs.normal(width, d_in, d_out)
    return memory_compressed.compress(x, weight, stride), _convolve(x, weight, stride)


@twin("memory-compressed")
def _memory_compressed(inputs: Inputs):
    (n,), (width, stride) = inputs.sizes(1, 1, 300), inputs.sizes(2)
    q, k, v = _words(inputs, n)
    w_k, w_v = (inputs.normal(width, x.shape[-1], x.shape[-1]) for x in (k, v))
    keys, values = (_convolve(x, w, stride) for x, w in ((k, w_k), (v, w_v)))
    return (q, k, v, w_k, w_v, stride), F.scaled_dot_product_attention(q, keys, values)


def _convolve(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    n, width = x.shape[-2], len(weight)
    # zeros enough for a state at every word
    flat = F.pad(x.reshape(-1, *x.shape[-2:]).mT, (0, width - 1))
    states = F.conv1d(flat, weight.permute(2, 1, 0), stride=stride).mT
    return (
        states[:, : -(-n // stride)]
        .unflatten(0, x.shape[:-2] or (1,))
        .reshape(*x.shape[:-2], -1, weight.shape[-1])
    )


@twin("linear")
def _linear(inputs: Inputs):
    return _linear_attention(inputs, causal=False)


@compare(linear.linear_by_scan, "`linear_attention`")
def _linear_by_scan(inputs: Inputs):
    arguments, _ = _linear_attention(inputs, causal=inputs.sizes(1) > [3])
    return linear.linear_by_scan(*arguments), linear.linear_attention(*arguments)


@compare(linear.linear_attention_in_chunks, "its n x n weights, `torch.tril` of them")
def _linear_in_chunks(inputs: Inputs):
    (q, k, v, _), theirs = _linear_attention(inputs, causal=True)
    (chunk,) = inputs.sizes(1)
    return linear.linear_attention_in_chunks(q, k, v, chunk), theirs


@twin("linear", "the same, `torch.tril` of them")
def _causal_linear(inputs: Inputs):
    return _linear_attention(inputs, causal=True)


def _linear_attention(inputs: Inputs, causal: bool):
    q, k, v = _words(inputs, *inputs.sizes(1, 1, 300))
    positive = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
    weights = torch.einsum("...id,...jd->...ij", *positive)
    weights = weights.tril() if causal else weights
    theirs = weights / weights.sum(-1, keepdim=True) @ v
    return (q, k, v, causal), theirs


def _words(inputs: Inputs, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw queries, keys and values of the same n words."""
    batch, (d_k, d_v) = inputs.batch(), inputs.sizes(2)
    return (
        inputs.normal(*batch, n, d_k),
        inputs.normal(*batch, n, d_k),
        inputs.normal(*batch, n, d_v),
    )
