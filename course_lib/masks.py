"""Masks: which tokens may look at which; boolean, and True means "may look" (lesson 05)."""

from collections.abc import Callable

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor


def causal_mask(
    n_q: int, n_k: int | None = None, *, device: torch.device | None = None
) -> Bool[Tensor, "query key"]:
    """Let each token look at itself and at the tokens before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    n_k = n_q if n_k is None else n_k
    if n_k < n_q:
        raise ValueError(
            f"each query is one of the keys too, so {n_q} queries need at least {n_q} keys, not "
            f"{n_k}: are the two numbers swapped?"
        )
    # begin with a mask that hides nothing
    everywhere = torch.ones(n_q, n_k, dtype=torch.bool, device=device)
    # hide what is right of the diagonal that ends in the bottom-right corner
    return everywhere.tril(n_k - n_q)


def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every token look at the real tokens of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n tokens at their ends. The middle axis is
    that of the queries, which all see the same tokens. Raises ValueError for lengths that are
    negative or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if ((lengths < 0) | (lengths > n)).any():
        raise ValueError(
            f"lengths must be from 0 to n = {n}, not from {lengths.min()} to {lengths.max()}: "
            "is n the length of the longest sentence of this batch?"
        )
    # number the places of a sentence
    places = torch.arange(n, device=lengths.device)
    # a place is real while it is smaller than the length of its sentence
    return places < rearrange(lengths, "batch -> batch 1 1")


def packing_mask(documents: Int[Tensor, "... n"]) -> Bool[Tensor, "... query key"]:
    """Let each token look back as far as its document begins.

    Short texts are packed into one line to waste no padding; `documents` gives each token's
    document. True where i and j are in the same document and j <= i. Source: Krell et al. 2021.

    >>> packing_mask(torch.tensor([0, 0, 1])).long().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    # let each token look at itself and at the tokens before it
    back = causal_mask(documents.shape[-1], device=documents.device)
    # but at none of another document
    same = rearrange(documents, "... n -> ... n 1") == rearrange(documents, "... n -> ... 1 n")
    return back & same


def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    # put the start before every sentence
    first = torch.full_like(tokens[..., :1], start)
    # drop the last token, after which nothing is predicted
    return torch.cat([first, tokens[..., :-1]], dim=-1)


def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes tokens (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each token is moved far, at random, once up and once down, so that neither a norm nor a ReLU can
    hide the change. An output that moves by no more than rounding error counts as unmoved; so does
    one that was NaN and stays NaN.
    """
    # draw how far to move each entry
    far = 10 + 10 * torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
    leaks = set()
    with torch.no_grad():
        # note what the layer returns for the tokens as they are
        before = layer(x)
        # change one token at a time, and leave the others as they are
        for token in range(1, x.shape[-2]):
            for step in (far, -far):
                changed = x.clone()
                changed[..., token, :] += step[..., token, :].to(x)
                # see which states moved, in any sentence and any of their entries
                rests = torch.isclose(layer(changed), before, equal_nan=True)
                moved = reduce(~rests, "... n d_out -> n", "any")
                # keep those to the left of the token
                leaks.update(moved[:token].nonzero().flatten().tolist())
    return sorted(leaks)
