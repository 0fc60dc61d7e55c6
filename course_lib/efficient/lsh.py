"""LSH attention: words look only at words that fall into the same bucket (lesson 12).

Time for n words, a round: O(n chunk d + n log n), forward and backward; memory O(n d), and one byte
for each pair that a mask shows or hides, O(n chunk). Hashing into b buckets adds O(n b d), or with
two hashes, one for each digit of the bucket, O(n sqrt(b) d).
Source: Kitaev et al. 2020 ("Reformer"), section 2.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import softmax
from course_lib.efficient.tiled import Tile, attend, spans

CHUNKS = 2  # chunks a tile: more waste scores that the mask hides, fewer cost calls


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
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    # measure how far each word reaches in each direction
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
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    _refuse_remainder(qk.shape[-2], chunk)
    # sort the words by bucket; within a bucket they keep their order
    order, back = _sort(buckets, qk)
    # let the words of each chunk see those of the same bucket, there and in the chunk before
    tiles = _tiles(order, [_chains(back, buckets, chunk)], chunk, causal)
    # attend in this order to keys of length 1, and put the words back
    words = torch.cat([qk, F.normalize(qk, dim=-1), v], dim=-1)
    found, log_total = _attend_in(order, back, words, qk.shape[-1], tiles)
    # a word that sees nothing else looks at itself
    return torch.where(log_total.isneginf().unsqueeze(-1), v, found)


def lsh_attention_in_rounds(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "round ... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to all that any round shows: like words that miss each other once may meet again.

    Each round has its own buckets. A pair counts in the first round that shows it, so this is dense
    attention under the union of what all rounds show: o_i = sum_r softmax(t_i)_r o_ir, t_ir being
    the log of round r's sum of exponentials. Time and memory are those of one round, times the
    rounds; finding the pairs seen before takes O(rounds^2 n chunk). Source: Kitaev et al. 2020,
    section 2 ("Multi-round LSH attention") and appendix A, where a pair counts in every round that
    shows it, divided by their number N_ij: the same sum. Raises ValueError where `chunk` does not
    divide n.
    """
    _refuse_remainder(qk.shape[-2], chunk)
    words, results, chains = torch.cat([qk, F.normalize(qk, dim=-1), v], dim=-1), [], []
    for own in buckets:
        order, back = _sort(own, qk)
        chains.append(_chains(back, own, chunk))
        # show no pair that an earlier round has shown
        tiles = _tiles(order, chains, chunk, causal)
        results.append(_attend_in(order, back, words, qk.shape[-1], tiles))
    # weigh the rounds by their sums of exponentials
    log_totals = torch.stack([log_total for _, log_total in results], dim=-1)
    shares = softmax(log_totals).unsqueeze(-2).unbind(-1)
    joined = v.new_zeros(1)
    for share, (found, _) in zip(shares, results, strict=True):
        joined = torch.addcmul(joined, share, found)
    return torch.where(log_totals.isneginf().all(-1, keepdim=True), v, joined)


def _refuse_remainder(n: int, chunk: int) -> None:
    if n % chunk:
        raise ValueError(
            f"chunks of {chunk} words do not divide n = {n}: fill the text up to a whole number of "
            "chunks, or choose another length"
        )


def _sort(buckets: Tensor, words: Tensor) -> tuple[Int[Tensor, "... n"], Int[Tensor, "... n"]]:
    """Find the word that comes at each place, in the order of buckets, and the place of each."""
    order = buckets.expand(words.shape[:-1]).argsort(dim=-1, stable=True)
    places = torch.arange(order.shape[-1], device=order.device).expand(order.shape)
    return order, torch.empty_like(order).scatter_(-1, order, places)


def _chains(
    back: Int[Tensor, "... n"], buckets: Int[Tensor, "... n"], chunk: int
) -> Int[Tensor, "... n"]:
    """Number the words: i and j share a bucket, and j a near chunk, where i's less j's is 0 or 1.

    Chunks count once and buckets twice: in sorted order both only rise, so words of two buckets are
    2 apart or more.
    """
    return (back // chunk + 2 * buckets).int()


def _tiles(
    order: Int[Tensor, "... n"],
    chains: Sequence[Int[Tensor, "... n"]],
    chunk: int,
    causal: bool,
) -> list[Tile]:
    """Let words in `order` see those next in their chain, not themselves (`causal`: none later).

    The last of the chains is this round's; what the others show was seen before.
    """
    words = order.reshape(-1, order.shape[-1])
    *earlier, own = (x.expand(order.shape).gather(-1, order).reshape(words.shape) for x in chains)
    tiles = []
    for rows in spans(order.shape[-1], CHUNKS * chunk):
        keys = slice(max(0, rows.start - chunk), rows.stop)
        mask = _next(own, rows, keys)
        if causal:
            mask &= words[:, rows, None] > words[:, None, keys]
        else:
            mask.diagonal(rows.start - keys.start, -2, -1).fill_(False)
        for chain in earlier:
            mask &= ~_next(chain, rows, keys)
        tiles.append((rows, keys, mask))
    return tiles


def _next(chain: Int[Tensor, "batch n"], rows: slice, keys: slice) -> Bool[Tensor, "batch row key"]:
    """Tell whether a row's number is a key's or one more: half the difference, rounded, is 0."""
    return ((chain[:, rows, None] - chain[:, None, keys]) >> 1) == 0


def _attend_in(
    order: Tensor, back: Tensor, words: Float[Tensor, "... n d"], d_k: int, tiles: list[Tile]
) -> tuple[Float[Tensor, "... n d_v"], Float[Tensor, "... n"]]:
    """Sort the words, attend, and put them back; a word is its query, its key and its value."""
    sizes = [d_k, d_k, words.shape[-1] - 2 * d_k]
    found, log_total = attend(*_Reorder.apply(words, order, back).split(sizes, dim=-1), tiles)
    return _Reorder.apply(found, back, order), log_total.gather(-1, back)


class _Reorder(torch.autograd.Function):
    """Put words into another order: `gather`, but by whole words, forward and backward."""

    @staticmethod
    def forward(ctx, x: Tensor, order: Tensor, back: Tensor):
        ctx.save_for_backward(order, back)
        n = order.shape[-1]
        starts = n * torch.arange(order.numel() // n, device=x.device).unsqueeze(-1)
        words = (order.reshape(-1, n) + starts).flatten()
        return x.reshape(-1, x.shape[-1]).index_select(0, words).view(x.shape)

    @staticmethod
    def backward(ctx, d_x: Tensor):
        order, back = ctx.saved_tensors
        return _Reorder.apply(d_x, back, order), None, None
