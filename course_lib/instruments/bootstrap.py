"""How sure a difference of two translators in BLEU is: the same texts, drawn anew (lesson 11)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.translation import cut, matches

DRAWN = 1000  # corpora


def bleu_counts(hypothesis: str, reference: str) -> list[int]:
    """Return matches and n-grams of each order, and both lengths: a corpus adds them up."""
    h, r = cut(hypothesis), cut(reference)
    pairs = [matches(h, r, n) for n in range(1, 5)]
    return [*(found for found, _ in pairs), *(there for _, there in pairs), len(h), len(r)]


def bleu_of_counts(sums: Float[Tensor, "... 10"]) -> Float[Tensor, "..."]:
    """Return the BLEU of corpora, in percent, by their sums of `bleu_counts`."""
    precisions = sums[..., :4] / sums[..., 4:8].clamp(min=1)
    brevity = (1 - sums[..., 9] / sums[..., 8].clamp(min=1)).clamp(max=0)
    return 100 * torch.exp(brevity + precisions.log().mean(-1))


def interval(
    ours: Sequence[str], theirs: Sequence[str], references: Sequence[str]
) -> tuple[float, float]:
    """Return the middle 95 % of BLEU(ours) - BLEU(theirs), over texts drawn with replacement.

    Both are scored on the same draws. Source: Koehn 2004.
    """
    count = len(references)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(count, (DRAWN, count), generator=generator)
    one, other = (
        bleu_of_counts(torch.tensor([*map(bleu_counts, side, references)]).double()[drawn].sum(1))
        for side in (ours, theirs)
    )
    low, high = (one - other).quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    return low, high
