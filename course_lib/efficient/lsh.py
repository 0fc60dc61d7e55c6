"""LSH attention: tokens look only at tokens that fall into the same bucket (lesson 14).

Time for n tokens, a round: O(n chunk d + n log n), forward and backward; memory O(n d), and a byte
for each pair that a mask shows or hides, O(n chunk). Hashing into b buckets adds O(n b d), or with
two hashes, one for each digit of the bucket, O(n sqrt(b) d).
Source: Kitaev et al. 2020 ("Reformer"), section 2.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import softmax
from course_lib.efficient.kernel import Tile, attend
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
from course_lib.multi_head import MultiHeadAttention

TILE_CHUNKS = 32  # chunks a tile
WORDS_AT_ONCE = 2**16  # tokens of all heads that are attended to in one go
BUCKETS_OF_ONE_DIGIT = 128  # more buckets than these are told by two digits


def draw_rotations(d: int, buckets: int, seed: int) -> Float[Tensor, "d half"]:
    """Draw the directions that `lsh_buckets` needs, half as many as there are buckets.

    Source: Kitaev et al. 2020, section 2 ("Locality sensitive hashing"). Raises ValueError for an
    odd number of buckets.
    """
    if buckets < 2 or buckets % 2:
        raise ValueError(
            "each direction has a bucket at either end, so there is an even number of them, at "
            f"least 2, not {buckets}"
        )
    return torch.randn(d, buckets // 2, generator=torch.Generator().manual_seed(seed))


def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each token the bucket of the direction in which it points: argmax [x R, -x R].

    Tokens that point alike tend to share their bucket. Of equally large entries the first counts.
    Time O(n d b) and memory O(n b) for b buckets. Source: Kitaev et al. 2020, section 2, after
    Andoni et al. 2015.
    """
    # measure how far each token reaches in each direction
    along = x @ rotations
    # count the opposite directions too, and take the one in which it reaches farthest
    return torch.cat([along, -along], dim=-1).argmax(-1)


def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to tokens of the same bucket, within one chunk and the chunk before it.

    Sorted by bucket, and within one by their place in the text, the tokens are cut into chunks of
    equal length; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a token looks at itself only if it sees nothing else.
    One bucket and chunk = n is dense attention in which no token looks at itself. With `causal`, no
    token looks at a later one. Time O(n chunk d + n log n), and no tensor holds n x n numbers.
    Source: Kitaev et al. 2020, section 2. Raises ValueError where `chunk` does not divide n.
    """
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError(
            f"chunks of {chunk} tokens do not divide n = {n}: fill the text up to a whole number "
            "of chunks, or choose another length"
        )
    # sort the tokens by bucket; within a bucket they keep their order
    order, back = _sort(buckets, qk)
    # let the tokens of each chunk see those of the same bucket, there and in the chunk before
    tiles = _tiles(order, [_chains(back, buckets, chunk)], chunk, causal)
    # attend in this order to keys of length 1, and put the tokens back
    tokens = qk, F.normalize(qk, dim=-1), v
    output, log_total = _attend_in(order, back, tokens, tiles, chunk)
    # a token that sees nothing else looks at itself
    return torch.where(log_total.isneginf().unsqueeze(-1), v, output)


def lsh_attention_in_rounds(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "round ... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to all that any round shows: like tokens that miss each other once may meet again.

    Each round has its own buckets. A pair counts in the first round that shows it, so this is dense
    attention under the union of what all rounds show: o_i = sum_r softmax(t_i)_r o_ir, t_ir being
    the log of round r's sum of exponentials. Time and memory are those of one round, times the
    rounds; finding the pairs seen before takes O(rounds^2 n chunk). Source: Kitaev et al. 2020,
    section 2 ("Multi-round LSH attention") and appendix A, where a pair counts in every round that
    shows it, divided by their number N_ij: the same sum. Raises ValueError where `chunk` does not
    divide n.
    """
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError(f"chunks of {chunk} tokens do not divide n = {n}: fill the text up")
    # a few heads at a time: what is needed of them can then stay near the processor
    few = max(1, WORDS_AT_ONCE // n)
    hashed = buckets.expand(-1, *qk.shape[:-1]).reshape(len(buckets), -1, n)
    parts = [x.reshape(-1, *x.shape[-2:]).split(few) for x in (qk, v)]
    outputs = [
        _in_rounds(some_qk, some_v, own, chunk, causal)
        for some_qk, some_v, own in zip(*parts, hashed.split(few, dim=1), strict=True)
    ]
    return torch.cat(outputs).view(v.shape)


def _in_rounds(
    qk: Tensor, v: Tensor, buckets: Tensor, chunk: int, causal: bool
) -> Float[Tensor, "text n d_v"]:
    tokens, results, chains = (qk, F.normalize(qk, dim=-1), v), [], []
    for own in buckets:
        order, back = _sort(own, qk)
        chains.append(_chains(back, own, chunk))
        # show no pair that an earlier round has shown
        tiles = _tiles(order, chains, chunk, causal)
        results.append(_attend_in(order, back, tokens, tiles, chunk))
    # weigh the rounds by their sums of exponentials
    log_totals = torch.stack([log_total for _, log_total in results], dim=-1)
    shares = softmax(log_totals).unsqueeze(-2).unbind(-1)
    joined = v.new_zeros(1)
    for share, (output, _) in zip(shares, results, strict=True):
        joined = torch.addcmul(joined, output, share)
    return torch.where(log_totals.isneginf().all(-1, keepdim=True), v, joined)


def _sort(buckets: Tensor, tokens: Tensor) -> tuple[Int[Tensor, "... n"], Int[Tensor, "... n"]]:
    """Find the token that comes at each place, in the order of buckets, and the place of each."""
    order = buckets.expand(tokens.shape[:-1]).argsort(dim=-1, stable=True)
    places = torch.arange(order.shape[-1], device=order.device).expand(order.shape)
    return order, torch.empty_like(order).scatter_(-1, order, places)


def _chains(
    back: Int[Tensor, "... n"], buckets: Int[Tensor, "... n"], chunk: int
) -> Int[Tensor, "... n"]:
    """Number the tokens: i and j share a bucket, and j a near chunk, where i's less j's is 0 or 1.

    A token's number is that of its chunk and twice that of its bucket. In sorted order both only
    rise, so tokens of two buckets are 2 apart or more, in one bucket as far apart as their chunks.
    Eight tokens, in the buckets 1 0 1 2 0 1 1 2, in chunks of four:

        token, sorted by bucket   1 4 0 2 | 5 6 3 7
        its bucket                0 0 1 1 | 1 1 2 2
        its chunk                 0 0 0 0 | 1 1 1 1
        its number                0 0 2 2 | 3 3 5 5

    Token 5 (3) sees tokens 0 and 2 (3 - 2 = 1: its bucket, the chunk before) and 6 (3 - 3 = 0). It
    sees neither token 4 (3 - 0 = 3) nor token 3 (3 - 5 = -2), which are in other buckets.
    """
    return (back // chunk + 2 * buckets).int()


def _tiles(
    order: Int[Tensor, "... n"],
    chains: Sequence[Int[Tensor, "... n"]],
    chunk: int,
    causal: bool,
) -> list[Tile]:
    """Let tokens in `order` see those next in their chain, not themselves (`causal`: none later).

    The last of the chains is this round's; what the others show was seen before. The texts stand
    one behind the other, and their chains have nothing to do with each other.
    """
    tokens, n = order.flatten(), order.shape[-1]
    texts = torch.arange(len(tokens) // n, device=order.device).unsqueeze(-1)
    sorted_chains = (x.expand(order.shape).gather(-1, order).reshape(-1, n) for x in chains)
    *earlier, own = ((x + texts * (x.amax() + 2)).int().flatten() for x in sorted_chains)
    # the first chunk has none before it
    edges = [0, *range(chunk, len(tokens), TILE_CHUNKS * chunk), len(tokens)]
    tiles = []
    for start, stop in pairwise(edges):
        rows, keys = slice(start, stop), slice(max(0, start - chunk), stop)
        # of all differences, 0 and 1 alone give 0 when they are halved and rounded down
        mask = _less(own, rows, keys, chunk) >> 1 == 0
        if causal:
            mask &= _less(tokens, rows, keys, chunk) > 0
        else:
            # at the end of its window, a chunk meets itself
            mask.diagonal(mask.shape[-1] - chunk, -2, -1).fill_(False)
        for chain in earlier:
            mask &= _less(chain, rows, keys, chunk) >> 1 != 0
        tiles.append((rows, [keys], mask))
    return tiles


def _less(
    x: Int[Tensor, " n"], rows: slice, keys: slice, chunk: int
) -> Int[Tensor, "chunk row key"]:
    """Subtract from each row's number those of the keys in its chunk's window."""
    windows = x[keys].unfold(0, keys.stop - keys.start - (rows.stop - rows.start) + chunk, chunk)
    return x[rows].view(-1, chunk, 1) - windows.unsqueeze(1)


def _attend_in(
    order: Tensor,
    back: Tensor,
    tokens: tuple[Tensor, ...],
    tiles: list[Tile],
    chunk: int,
) -> tuple[Float[Tensor, "... n d_v"], Float[Tensor, "... n"]]:
    """Sort queries, keys and values, attend, and put the tokens back."""
    n, texts = order.shape[-1], order.numel() // order.shape[-1]
    text = torch.arange(texts, device=order.device).unsqueeze(-1)
    # a row of numbers for each token of each text, in the order in which heads lie in memory
    there = (order.reshape(texts, n) * texts + text).flatten()
    back_again = (back.reshape(texts, n) + text * n).T.flatten()
    rows = (x.reshape(texts, n, -1).transpose(0, 1).flatten(0, 1) for x in tokens)
    q, k, v = (_Permute.apply(x, there, back_again) for x in rows)
    output, log_total = attend(q, k, v, tiles, chunk)
    output = _Permute.apply(output, back_again, there).view(n, texts, -1).transpose(0, 1)
    return output.reshape(*order.shape, -1), log_total.view(order.shape).gather(-1, back)


class _Permute(torch.autograd.Function):
    """Put rows into another order, and gradients back into this one."""

    @staticmethod
    def forward(ctx, x: Tensor, there: Tensor, back: Tensor):
        ctx.save_for_backward(there, back)
        return x.index_select(0, there)

    @staticmethod
    def backward(ctx, d_x: Tensor):
        there, back = ctx.saved_tensors
        return _Permute.apply(d_x, back, there), None, None


def rule(
    q: Queries,
    k: Keys,
    v: Values,
    mask: Mask = None,
    *,
    buckets: int,
    chunk: int,
    rounds: int = 1,
    seed: int = 0,
    causal: bool = False,
) -> Output:
    """Attend to tokens of the same bucket; queries and keys are one, as `SharedQueryKey` has them.

    Hidden tokens get zeros. With `causal`, no token looks at a later one; but later tokens are
    sorted with the rest, and so change which keys a token sees. Raises ValueError
    for keys that are not the queries.
    """
    refuse_another_text(q, k)
    if q is not k and not torch.equal(q, k):
        raise ValueError(
            "LSH attention hashes tokens, so its queries are its keys: make the layer with "
            "SharedQueryKey, and let the tokens attend to themselves"
        )
    real, causal = read_mask(mask, q, k, causal)
    n, missing = q.shape[-2], -q.shape[-2] % chunk
    own = torch.stack([_hash(q.detach(), buckets, seed + i) for i in range(rounds)])
    if real is not None:
        # hidden tokens get a bucket of their own, the last, and nothing to say
        own, v = own.masked_fill(~real, buckets), v * real.unsqueeze(-1)
    if missing:  # otherwise this would copy what it is given
        own = F.pad(own, (0, missing), value=buckets)
        q, v = (F.pad(x, (0, 0, 0, missing)) for x in (q, v))
    return lsh_attention_in_rounds(q, v, own, chunk, causal)[..., :n, :]


class SharedQueryKey(MultiHeadAttention):
    """Multi-head attention whose keys are its queries. Source: Kitaev et al. 2020, section 2."""

    def __init__(self, d_model: int, heads: int, rule: Callable):
        super().__init__(d_model, heads, rule)
        self.w_k = self.w_q


def _hash(tokens: Float[Tensor, "... n d"], buckets: int, seed: int) -> Int[Tensor, "... n"]:
    """Find the tokens' buckets; where there are many, digit by digit, each by its own directions.

    Source: Kitaev et al. 2020, not the text but the program that came with it.
    """
    bases, own = (
        _bases(buckets),
        torch.zeros(tokens.shape[:-1], dtype=torch.long, device=tokens.device),
    )
    rotations = draw_rotations(tokens.shape[-1], sum(bases), seed).to(tokens)
    for base, directions in zip(bases, rotations.split([b // 2 for b in bases], -1), strict=True):
        own = own * base + lsh_buckets(tokens, directions)
    return own


def _bases(buckets: int) -> list[int]:
    """Factor a large number of buckets into two even ones, as near to each other as they can be."""
    low = [b for b in range(2, isqrt(buckets) + 1, 2) if buckets % (2 * b) == 0]
    if buckets <= BUCKETS_OF_ONE_DIGIT or not low:
        return [buckets]
    return [buckets // low[-1], low[-1]]


VARIANT = Variant(
    name="LSH",
    function=lsh_attention,
    rule=rule,
    twin="`F.softmax` of the visible pairs, word by word",
    example=lambda n, d_k: {"buckets": 4, "chunk": 8, "rounds": 2},
    experiment=lambda n, d_k: {"buckets": n // 32, "chunk": 32, "rounds": 2},
    benchmark=lambda n, d_k: {"buckets": n // 64, "chunk": 64, "rounds": 2},
    causal=True,
    layer=SharedQueryKey,
)
