"""Beam search: keep several translations in mind while writing (lesson 11)."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor


def beam_search(
    step: Callable[[Int[Tensor, "prefixes n"]], Float[Tensor, "prefixes vocab"]],
    start: int,
    stop: int,
    width: int,
    most: int,
    alpha: float = 0.6,
) -> tuple[list[int], float]:
    """Find the tokens of the highest sum of log-probabilities / ((5 + length) / 6)^alpha.

    `step(prefixes)` returns the log-probability of each next token of each prefix, the start
    first. In each round, all continuations of all live prefixes are ranked by their sums: those
    among the best `width` that end in `stop` are finished, and the best `width` of the others live
    on, if their probability is above 0. It ends when nothing is live, when `width` are finished, or
    after `most` tokens, and returns the best one that is finished (if none is, the best that is
    live) without start and stop, with its score. The length counts what was written, the stop
    included. Width 1 is greedy. Source: Wu et al. 2016, eq. 14, without coverage. Raises ValueError
    for a width below 1, or where `step` leaves no token a probability above 0.
    """
    if width < 1:
        raise ValueError(f"a beam holds at least 1 prefix, not {width}: width 1 is greedy")
    # begin with one live prefix, whose sum of log-probabilities is 0
    live, finished = [([start], 0.0)], []
    for _ in range(most):
        # end when nothing is live, or when as many are finished as the beam is wide
        if not live or len(finished) >= width:
            break
        # add to each sum the log-probabilities of all its continuations, and rank them together
        log_probabilities = step(torch.tensor([tokens for tokens, _ in live]))
        sums = log_probabilities.new_tensor([total for _, total in live]).unsqueeze(-1)
        continued = (sums + log_probabilities).flatten()
        # one continuation of each prefix is a stop: so many hold `width` others
        ranked = continued.topk(min(width + len(live), len(continued)))
        prefixes, live = live, []
        for rank, (total, place) in enumerate(
            zip(ranked.values.tolist(), ranked.indices.tolist(), strict=True)
        ):
            # leave out what has the probability 0, and with it all that follows
            if total == float("-inf"):
                break
            # find out which prefix this continues, and by which token
            prefix, token = divmod(place, log_probabilities.shape[-1])
            longer = [*prefixes[prefix][0], token], total
            # finish what stops among the best, and let the best of the others live on
            if token == stop and rank < width:
                finished.append(longer)
            elif token != stop and len(live) < width:
                live.append(longer)
    if not finished and not live:
        raise ValueError("no token has a probability above 0: does step return log-probabilities?")
    # compare the finished by their scores, or if there is none, the live
    scored = [
        (total / ((5 + len(tokens) - 1) / 6) ** alpha, tokens) for tokens, total in finished or live
    ]
    score, tokens = max(scored, key=lambda pair: pair[0])
    # leave out the start and the stop
    return [token for token in tokens[1:] if token != stop], score
