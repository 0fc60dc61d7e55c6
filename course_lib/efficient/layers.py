"""Layers: each variant takes the place of dense attention in our blocks (lesson 12).

Time and memory are the variant's own, over all heads; a mask of n x n costs O(n^2) to read.

A rule is what `MultiHeadAttention` takes as `attention`: rule(q, k, v, mask). Set one up with
`partial(window, width=256)`. Every rule hides padding, the mask (..., 1, key) of
`padding_mask`; the causal ones also take `causal_mask`, alone or joined with padding, or
`causal=True`, which needs no n x n mask. Any other mask is a ValueError. What needs a whole number
of blocks is filled up with hidden words and cut again.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from math import isqrt

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.efficient.bigbird import bigbird_attention, neighbours
from course_lib.efficient.linear import linear_attention
from course_lib.efficient.linformer import linformer_attention
from course_lib.efficient.lsh import draw_rotations, lsh_attention_in_rounds, lsh_buckets
from course_lib.efficient.memory_compressed import BLOCK, compress
from course_lib.efficient.tiled import attend, spans, tiled_attention
from course_lib.efficient.window import window_attention
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention

ROWS = 64  # queries a tile of causal attention
MANY = 128  # buckets: more than these are told by two digits

Queries = Float[Tensor, "... query d_k"]
Keys = Float[Tensor, "... key d_k"]
Values = Float[Tensor, "... key d_v"]
Found = Float[Tensor, "... query d_v"]
Mask = Bool[Tensor, "..."] | None


def tiled(
    q: Queries, k: Keys, v: Values, mask: Mask = None, *, block: int = BLOCK, causal: bool = False
) -> Found:
    """Attend to all words, with `causal` to all up to itself: exactly, and keep no square."""
    real, causal = _read(mask, q, k, causal)
    everywhere = partial(tiled_attention, block=block)
    rule = partial(_look_back, reach=q.shape[-2]) if causal else everywhere
    return _hiding(rule, q, k, v, real)


def window(
    q: Queries, k: Keys, v: Values, mask: Mask = None, *, width: int, causal: bool = False
) -> Found:
    """Attend where abs(i - j) <= width // 2, with `causal` where 0 <= i - j <= width // 2."""
    _refuse_another_text(q, k)
    real, causal = _read(mask, q, k, causal)
    both_sides = partial(window_attention, width=width)
    rule = partial(_look_back, reach=width // 2) if causal else both_sides
    return _hiding(rule, q, k, v, real)


def bigbird(
    q: Queries,
    k: Keys,
    v: Values,
    mask: Mask = None,
    *,
    block: int,
    window: int,
    global_blocks: int,
    random_blocks: int,
    seed: int = 0,
) -> Found:
    """Attend to a window of blocks, to global and to random ones; there is no causal form."""
    _refuse_another_text(q, k)
    real, _ = _read(mask, q, k)
    n, missing = q.shape[-2], -q.shape[-2] % block
    if missing:
        real = torch.ones(n, dtype=torch.bool, device=q.device) if real is None else real
        real = F.pad(real, (0, missing))
    listed = _listed((n + missing) // block, window, global_blocks, random_blocks, seed)
    rule = partial(bigbird_attention, neighbours=listed, block=block)
    return _hiding(rule, *(F.pad(x, (0, 0, 0, missing)) for x in (q, k, v)), real)[..., :n, :]


def lsh(
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
) -> Found:
    """Attend to words of the same bucket; queries and keys are one, as `SharedQueryKey` has them.

    Hidden words get zeros. With `causal`, no word looks at a later one; but later words have their
    part in the sorting, and so in whom a word meets. Raises ValueError for keys that are not the
    queries.
    """
    _refuse_another_text(q, k)
    if not torch.equal(q, k):
        raise ValueError(
            "LSH attention hashes words, so its queries are its keys: make the layer with "
            "SharedQueryKey, and let the words attend to themselves"
        )
    real, causal = _read(mask, q, k, causal)
    n, missing = q.shape[-2], -q.shape[-2] % chunk
    own = torch.stack([_hash(q.detach(), buckets, seed + i) for i in range(rounds)])
    if real is not None:
        # hidden words get a bucket of their own, the last, and nothing to say
        own, v = own.masked_fill(~real, buckets), v * real.unsqueeze(-1)
    if missing:  # otherwise this would copy what it is given
        own = F.pad(own, (0, missing), value=buckets)
        q, v = (F.pad(x, (0, 0, 0, missing)) for x in (q, v))
    return lsh_attention_in_rounds(q, v, own, chunk, causal)[..., :n, :]


def linear(q: Queries, k: Keys, v: Values, mask: Mask = None, *, causal: bool = False) -> Found:
    """Read the sum of all words, or of those before: elu + 1 in the place of the softmax."""
    _refuse_another_text(q, k)
    real, causal = _read(mask, q, k, causal)
    if real is not None:
        # where the feature of a key is 0, it has no weight
        k = k.masked_fill(~real.unsqueeze(-1), float("-inf"))
    return linear_attention(q, k, v, causal)


class Linformer(nn.Module):
    """Attend to `mixtures` of the words, learned for texts of up to n words, the same in all heads.

    A shorter text is one filled up with zeros. Source: Wang et al. 2020, section 4. Raises
    ValueError for longer texts.
    """

    def __init__(self, n: int, mixtures: int):
        super().__init__()
        self.e = nn.Parameter(torch.randn(n, mixtures) / n**0.5)
        self.f = nn.Parameter(torch.randn(n, mixtures) / n**0.5)

    def forward(self, q: Queries, k: Keys, v: Values, mask: Mask = None) -> Found:
        """Attend; hidden words are in no mixture."""
        _refuse_another_text(q, k)
        n, longest = k.shape[-2], len(self.e)
        if n > longest:
            raise ValueError(
                f"these mixtures were made for texts of up to {longest} words, not {n}"
            )
        real, _ = _read(mask, q, k)
        if real is not None:
            k, v = (x * real.unsqueeze(-1) for x in (k, v))
        # a slice of all words would cost a copy of its gradient
        e, f = (x if n == longest else x[:n] for x in (self.e, self.f))
        return linformer_attention(q, k, v, e, f)


class MemoryCompressed(nn.Module):
    """Attend to states of `width` words each, in heads of d_k numbers.

    Begins with the mean of the words. A state whose words are all hidden is hidden. Source: Liu et
    al. 2018, section 4.2.3, where each head has its own weights.
    """

    def __init__(self, d_k: int, width: int = 3):
        super().__init__()
        mean = torch.eye(d_k).expand(width, d_k, d_k) / width
        self.key_weight, self.value_weight = (nn.Parameter(mean.clone()) for _ in range(2))

    def forward(self, q: Queries, k: Keys, v: Values, mask: Mask = None) -> Found:
        """Attend; hidden words add nothing to a state."""
        real, _ = _read(mask, q, k)
        width = len(self.key_weight)
        if real is not None:
            k, v = (x * real.unsqueeze(-1) for x in (k, v))
            real = F.pad(real, (0, -k.shape[-2] % width)).unflatten(-1, (-1, width)).any(-1)
        keys, values = compress(k, self.key_weight, width), compress(v, self.value_weight, width)
        return _hiding(partial(tiled_attention, block=BLOCK), q, keys, values, real)


class SharedQueryKey(MultiHeadAttention):
    """Multi-head attention whose keys are its queries. Source: Kitaev et al. 2020, section 2."""

    def __init__(self, d_model: int, heads: int, attention: Callable):
        super().__init__(d_model, heads, attention)
        self.w_k = self.w_q


_listed = lru_cache(maxsize=8)(neighbours)


def _hash(words: Queries, buckets: int, seed: int) -> Int[Tensor, "... query"]:
    """Find the words' buckets; where there are many, digit by digit, each by directions of its own.

    Source: Kitaev et al. 2020, not the text but the program that came with it.
    """
    bases, own = _bases(buckets), 0
    rotations = draw_rotations(words.shape[-1], sum(bases), seed).to(words)
    for base, directions in zip(bases, rotations.split([b // 2 for b in bases], -1), strict=True):
        own = own * base + lsh_buckets(words, directions)
    return own


def _bases(buckets: int) -> list[int]:
    """Factor a large number of buckets into two even ones, as near to each other as they can be."""
    low = [b for b in range(2, isqrt(buckets) + 1, 2) if buckets % (2 * b) == 0]
    return [buckets // low[-1], low[-1]] if buckets > MANY and low else [buckets]


def _look_back(q: Queries, k: Keys, v: Values, reach: int) -> Found:
    """Attend where 0 <= i - j <= reach."""
    places, tiles = torch.arange(q.shape[-2], device=q.device), []
    for rows in spans(q.shape[-2], ROWS):
        keys = slice(max(0, rows.start - reach), rows.stop)
        distance = places[rows].unsqueeze(-1) - places[keys]
        tiles.append((rows, [keys], (distance >= 0) & (distance <= reach)))
    return attend(q, k, v, tiles)[0]


def _hiding(rule: Callable, q: Queries, k: Keys, v: Values, real: Tensor | None) -> Found:
    """Attend by rule(q, k, v), but to no key that is not real; a row that sees none is zeros."""
    if real is None:
        return rule(q, k, v)
    d = q.shape[-1]
    # one number more in each word: times 1, a hidden key's drowns whatever else is in the score
    lowest = torch.finfo(q.dtype).min / 4
    q = F.pad(q * ((d + 1) / d) ** 0.5, (0, 1), value=1.0)
    k = _beside(k, torch.zeros_like(real, dtype=k.dtype).masked_fill(~real, lowest))
    # the same average tells which share of what was seen is real: all, or nothing
    found, share = rule(q, k, _beside(v, real.to(v))).split([v.shape[-1], 1], dim=-1)
    return torch.where(share > 0, found, 0.0)


def _beside(x: Float[Tensor, "... n d"], column: Float[Tensor, "..."]) -> Float[Tensor, "... n e"]:
    return torch.cat([x, column.expand(x.shape[:-1]).unsqueeze(-1)], dim=-1)


def _read(
    mask: Mask, q: Queries, k: Keys, causal: bool | None = None
) -> tuple[Bool[Tensor, "..."] | None, bool]:
    """Say which keys a mask has as real (None for all), and whether it hides the future as well.

    `causal` is what the layer was set to, or None where it has no causal form.
    """
    if mask is None:
        real, hides_future = None, False
    else:
        real = mask.any(-2).expand(*mask.shape[:-2], k.shape[-2])
        hides_future = not _alike(mask, real.unsqueeze(-2))
    if hides_future and not _hides_the_future(mask, real):
        raise ValueError(
            "an efficient layer never sees all scores at once, so a mask must hide keys from all "
            "queries alike, as padding_mask does, or be causal_mask, or the two joined by &: for "
            "another, take dense attention"
        )
    if hides_future and causal is None:
        raise ValueError(
            "this attention has no causal form: what it looks at are sums of earlier and later "
            "words, or whole blocks of them; take the window, LSH, linear or tiled attention"
        )
    if causal and q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"a causal layer takes one text, not {q.shape[-2]} queries and {k.shape[-2]} keys"
        )
    return real, hides_future or bool(causal)


def _hides_the_future(mask: Tensor, real: Tensor) -> bool:
    n_q, n_k = mask.shape[-2], real.shape[-1]
    return n_q == n_k and _alike(mask, causal_mask(n_q).to(mask.device) & real.unsqueeze(-2))


def _alike(mask: Tensor, other: Tensor) -> bool:
    """Tell whether two masks are the same, an axis of size 1 standing for all."""
    return mask.shape[-2] == other.shape[-2] == 1 or bool((mask == other).all())


def _refuse_another_text(q: Queries, k: Keys) -> None:
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"this attention lets the words of one text look at each other, not {q.shape[-2]} "
            f"queries at {k.shape[-2]} keys: for cross-attention take tiled or memory-"
            "compressed attention"
        )
