"""Occlusion: which tokens of its source does an output depend on? (lesson 02)."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor


def probability_drops(
    probabilities: Callable[[Int[Tensor, "batch source"]], Float[Tensor, "batch n"]],
    source: Int[Tensor, " source"],
    replacements: Int[Tensor, " replacements"],
) -> Float[Tensor, "n source"]:
    """Return how far each probability falls when one token of the source is replaced.

    d_ij = p_i(x) - mean_r p_i(x with r in place j)

    `probabilities` gives each source of a batch the probabilities of the n tokens that were
    written. In each place, the mean runs over those replacements r that differ from the token
    there. Where a probability rises, its drop is negative.

    Source: Zeiler & Fergus 2014 (occlusion), for tokens in place of patches of an image.
    """
    # the probabilities for the source as it is, a batch of one
    [p] = probabilities(source[None])
    drops = []
    for j, token in enumerate(source):
        # a copy of the source for each other token, which is written in place j
        others = replacements[replacements != token]
        changed = source.repeat(len(others), 1)
        changed[:, j] = others
        # how far the mean over these copies is below p
        drops.append(p - probabilities(changed).mean(dim=0))
    # a row for each probability, a column for each token of the source
    return torch.stack(drops, dim=-1)
