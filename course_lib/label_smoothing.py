"""Label smoothing: a loss that does not ask for certainty (lesson 11)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def smoothed_cross_entropy(
    logits: Float[Tensor, "... vocab"],
    targets: Int[Tensor, "..."],
    smoothing: float,
    ignore: int | None = None,
) -> Float[Tensor, ""]:
    """Return the mean over targets of (1 - s) loss(target) + s mean over the vocabulary of loss(v).

    loss(v) = -log softmax(logits)_v, in nats, and s is `smoothing`. Targets equal to `ignore`
    do not count; where all are ignored, the loss and its gradient are 0. Source: Szegedy et al.
    2016, section 7; s = 0.1 in Vaswani et al. 2017, section 5.4. Raises ValueError for a
    `smoothing` outside of 0 to 1.
    """
    if not 0 <= smoothing <= 1:
        raise ValueError(
            f"smoothing is the share of the loss that goes to the whole vocabulary, from 0 to 1, "
            f"not {smoothing}: is it a percentage?"
        )
    if ignore is not None and (targets == ignore).all():
        return logits[..., :0].sum()
    # tell the targets that count from those that are ignored
    counted = torch.ones_like(targets, dtype=torch.bool) if ignore is None else targets != ignore
    # the loss that each token of the vocabulary would have
    losses = -torch.log_softmax(logits, dim=-1)
    # pick the target's, and average all of them
    chosen = targets.masked_fill(~counted, 0).unsqueeze(-1)
    of_target, of_all = losses.gather(-1, chosen).squeeze(-1), losses.mean(-1)
    # mix the two by their shares
    mixed = (1 - smoothing) * of_target + smoothing * of_all
    # average over the targets that count
    return mixed.masked_fill(~counted, 0.0).sum() / counted.sum()
