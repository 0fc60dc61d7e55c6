"""Speculative decoding: a cheap draft is checked by the large model, many tokens at once (15)."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

# (tokens so far, how many at most) -> (tokens drafted, the distribution that each was drawn from)
Draft = Callable[[list[int], int], tuple[Int[Tensor, " m"], Float[Tensor, "m vocab"]]]
# (tokens so far, how many rows) -> distributions of the next token after each of the last rows
Score = Callable[[list[int], int], Float[Tensor, "rows vocab"]]


def accept(
    drafted: Int[Tensor, " m"],
    draft: Float[Tensor, "m vocab"],
    target: Float[Tensor, "m+1 vocab"],
    uniform: Float[Tensor, " m"],
) -> tuple[int, Float[Tensor, " vocab"]]:
    """Accept the first drafted tokens that a test passes: returns (count, probabilities).

    Token x_i was drawn from draft_i; target_i is what the large model says there. It is accepted
    while uniform_i < target_i(x_i) / draft_i(x_i), and the first refusal ends it. `probabilities`
    are those of the one token to draw next: max(target_i - draft_i, 0), divided by its sum, at the
    first refusal i; the last row of target where nothing was refused. With uniform drawn from
    [0, 1), the text is distributed as the large model's own. Source: Leviathan et al. 2023,
    algorithm 1.
    """
    rows = torch.arange(len(drafted), device=drafted.device)
    # look up the probability that each model gave to the drafted token
    wanted, offered = target[rows, drafted], draft[rows, drafted]
    # count the tokens before the first refusal
    passes = uniform * offered < wanted
    count = int(passes.cumprod(dim=0).sum())
    # nothing refused: the large model's next distribution is at hand
    if count == len(drafted):
        return count, target[count]
    # otherwise draw from where the large model wants more than the draft offered
    missing = (target[count] - draft[count]).clamp(min=0)
    return count, missing / missing.sum()


def speculate(
    score: Score, draft: Draft, tokens: Sequence[int], new: int, ahead: int, seed: int
) -> tuple[list[int], int]:
    """Write `new` tokens, `ahead` of them drafted at a time: returns (all tokens, rounds).

    Each round calls `score` once, for the token after the text and after each drafted token. The
    text is distributed as if `score` alone had drawn token after token. Source: Leviathan et al.
    2023, algorithm 1.
    """
    generator = torch.Generator().manual_seed(seed)
    text, rounds, end = list(tokens), 0, len(tokens) + new
    while len(text) < end:
        # the last token of a round is the large model's own
        drafted, offered = draft(text, min(ahead, end - len(text) - 1))
        target = score(text + drafted.tolist(), len(drafted) + 1)
        uniform = torch.rand(len(drafted), generator=generator)
        count, probabilities = accept(drafted, offered, target, uniform)
        drawn = int(torch.multinomial(probabilities, 1, generator=generator))
        text += [*drafted[:count].tolist(), drawn]
        rounds += 1
    return text, rounds
