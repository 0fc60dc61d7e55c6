"""What the variants' rules share: reading masks, hiding padding, refusing what none can honour.

A rule is what `MultiHeadAttention` takes: rule(q, k, v, mask). Each variant's file has one, set up
with `partial(window.rule, width=256)`. Every rule hides padding, the mask (..., 1, key) of
`padding_mask`; the causal ones also take `causal_mask`, alone or joined with padding, or
`causal=True`, which needs no n x n mask. Any other mask is a ValueError. What needs a whole number
of blocks is filled up with hidden tokens and cut again (lessons 13 and 14).

Time and memory of a rule are its variant's own, over all heads; a mask of n x n costs O(n^2) to
read.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from course_lib.masks import causal_mask

Queries = Float[Tensor, "*batch query d_k"]
Keys = Float[Tensor, "*batch key d_k"]
Values = Float[Tensor, "*batch key d_v"]
Output = Float[Tensor, "*batch query d_v"]
Mask = Bool[Tensor, "*#batch #query #key"] | None
Real = Bool[Tensor, "*#batch key"] | None


def hiding(rule: Callable, q: Queries, k: Keys, v: Values, real: Real) -> Output:
    """Attend by rule(q, k, v), but to no key that is not real; a row that sees none is zeros."""
    if real is None:
        return rule(q, k, v)
    d = q.shape[-1]
    # one number more in each token: times 1, a hidden key's drowns whatever else is in the score
    lowest = torch.finfo(q.dtype).min / 4
    q = F.pad(q * ((d + 1) / d) ** 0.5, (0, 1), value=1.0)
    k = _beside(k, torch.zeros_like(real, dtype=k.dtype).masked_fill(~real, lowest))
    # the same average tells which share of what was seen is real: all, or nothing
    output, share = rule(q, k, _beside(v, real.to(v))).split([v.shape[-1], 1], dim=-1)
    return torch.where(share > 0, output, 0.0)


def read_mask(mask: Mask, q: Queries, k: Keys, causal: bool | None = None) -> tuple[Real, bool]:
    """Tell which keys are real (None for all), and whether the mask hides the future as well.

    `causal` is what the layer was set to, or None where it has no causal form.
    """
    real, hides_future = None, False
    if mask is not None:
        real = mask.any(-2).expand(*mask.shape[:-2], k.shape[-2])
        hides_future = not _alike(mask, real.unsqueeze(-2))
        if hides_future and not _hides_the_future(mask, real):
            raise ValueError(
                "an efficient layer never sees all scores at once, so a mask must hide keys from "
                "all queries alike, as padding_mask does, or be causal_mask, or the two joined by "
                "&: for another, take dense attention"
            )
    if hides_future and causal is None:
        raise ValueError(
            "this attention has no causal form here: each of its keys is a mixture of earlier and "
            "later tokens; take the window, BigBird, LSH, linear or tiled attention"
        )
    if causal and q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"a causal layer takes one text, not {q.shape[-2]} queries and {k.shape[-2]} keys"
        )
    return real, hides_future or bool(causal)


def refuse_another_text(q: Queries, k: Keys) -> None:
    """Raise ValueError where there are not as many keys as queries."""
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"this attention lets the tokens of one text look at each other, not {q.shape[-2]} "
            f"queries at {k.shape[-2]} keys: for cross-attention take tiled or memory-"
            "compressed attention"
        )


def _hides_the_future(mask: Tensor, real: Tensor) -> bool:
    n_q, n_k = mask.shape[-2], real.shape[-1]
    return n_q == n_k and _alike(mask, causal_mask(n_q).to(mask.device) & real.unsqueeze(-2))


def _alike(mask: Tensor, other: Tensor) -> bool:
    """Tell whether two masks are the same, an axis of size 1 standing for all."""
    return mask.shape[-2] == other.shape[-2] == 1 or bool((mask == other).all())


def _beside(
    x: Float[Tensor, "*batch n d"], column: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*batch n e"]:
    return torch.cat([x, column.expand(x.shape[:-1]).unsqueeze(-1)], dim=-1)
