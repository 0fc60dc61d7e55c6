"""Draw only among the likeliest tokens that together have the probability p."""

from itertools import pairwise

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.language_model import top_p

exercise = Exercise(
    reference=top_p,
    lesson="10_sampling",
    title="As many as are needed",
    minutes=7,
    difficulty=2,
    hints=(
        "Probabilities are 0.5, 0.3, 0.15 and 0.05, and p is 0.7. Which tokens stay? By which sum "
        "do you see that the second one is still needed, and the third is not?",
        "The first token always stays, even if it alone has more than p. What is the sum of all "
        "that come before the first?",
        "The running sum lives in the sorted order. How do you bring its answer back to the "
        "places of the vocabulary?",
    ),
    clauses={
        "Hidden logits become minus infinity": "filled_with_zero",
        "one token at least stays": "nothing_left",
        "of equally likely ones the lower ids": "higher_ids",
        "Also called": GIVEN,
    },
    small_only="hidden logits are minus infinity, however small the others are",
)


def spread(draw: Draw, *shape: int):
    """Draw logits whose probabilities differ well, so that no sum is near a usual p."""
    return 1.5 * draw.normal(*shape)


@exercise.cases
def cases(draw: Draw):
    yield "three tokens", (spread(draw, 3), 0.7)
    yield "one likely token is enough", (spread(draw, 5) + 20 * (torch.arange(5) == 2), 0.9)
    yield "for each text its own number", (spread(draw, 4, 7), 0.6)
    yield "large logits", (200 + spread(draw, 3, 5), 0.7)
    yield "two batch dimensions", (spread(draw, 2, 3, 6), 0.8)
    yield "a small p keeps one", (spread(draw, 3, 4), 0.01)
    yield "the smallest p keeps one", (spread(draw, 3, 4), 1e-30)
    yield "p = 1 keeps all", (spread(draw, 6), 1.0)
    yield "half of four equals", (draw.normal(2, 1).expand(2, 4).contiguous(), 0.5)
    yield "a little more than half of four equals", (torch.zeros(4), 0.55)
    yield "equals in pairs", (draw.integers(0, 2, 3, 8).float(), 0.66)
    yield "some are hidden already", (spread(draw, 6).masked_fill(draw.mask(6), -torch.inf), 0.95)
    yield "one token", (spread(draw, 1), 0.5)


@exercise.edges
def edges(draw: Draw):
    far = spread(draw, 3, 5) + torch.tensor([[0.0], [-200.0], [200.0]])
    yield "texts whose logits are far apart", (far, 0.7)
    yield "most of 128 equals", (draw.normal(1).expand(128).contiguous(), 0.9)


@exercise.requires("the kept tokens have at least p, and without the least of them less", points=2)
def fewest(answer, draw: Draw):
    logits = spread(draw, 6, 20)
    found = answer(logits, 0.8)
    kept = found != -torch.inf
    shares = torch.softmax(logits, -1).masked_fill(~kept, 0.0)
    least = shares.masked_fill(~kept, 1.0).amin(-1)
    total = shares.sum(-1)
    few = (kept.sum(-1) < 20).all() and torch.equal(found[kept], logits[kept])
    return few and (total >= 0.8 - 1e-5).all() and (total - least < 0.8 + 1e-5).all()


@exercise.requires("a larger p hides nothing that a smaller one keeps")
def monotone(answer, draw: Draw):
    logits = spread(draw, 3, 30)
    kept = [answer(logits, p) != -torch.inf for p in (0.2, 0.5, 0.8, 0.97)]
    counts = [int(x.sum()) for x in kept]
    return counts == sorted(set(counts)) and all((b | ~a).all() for a, b in pairwise(kept))


def hide(logits, p, needed, filler=-torch.inf, shares=None, sign=-1):
    order = (sign * logits).argsort(dim=-1, stable=True)
    probabilities = (torch.softmax(logits, -1) if shares is None else shares).gather(-1, order)
    kept = needed(probabilities, probabilities.cumsum(-1))
    return logits.masked_fill(~torch.zeros_like(kept).scatter(-1, order, kept), filler)


@exercise.mistake
def the_last_is_missing(logits, p):
    """The token that takes the sum past p was hidden, so those that stay have less than p. Compare
    p with the sum *before* each token."""
    return hide(logits, p, lambda share, total: (total < p) | (total == share))


@exercise.mistake
def the_last_is_missing_past_p(logits, p):
    """The token that takes the sum past p was hidden, so those that stay have less than p. Compare
    p with the sum *before* each token."""
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    hidden = ordered.softmax(-1).cumsum(-1) > p
    hidden[..., 0] = False
    return logits.masked_fill(torch.zeros_like(hidden).scatter(-1, order, hidden), -torch.inf)


@exercise.mistake
def nothing_left(logits, p):
    """Where the likeliest token alone has more than p, nothing is left to draw from. What is the
    sum of all tokens before the first?"""
    return hide(logits, p, lambda share, total: total <= p)


@exercise.mistake
def at_most(logits, p):
    """One token more stays than is needed: the sum of those before it is p already."""
    return hide(logits, p, lambda share, total: total - share <= p)


@exercise.mistake
def least_likely(logits, p):
    """The least likely tokens stayed. From which end is the sum taken?"""
    return hide(logits, p, lambda share, total: total - share < p, sign=1)


@exercise.mistake
def threshold(logits, p):
    """Tokens with a probability of at least p stayed. It is the *sum* that is to reach p: with
    twenty likely tokens none of them has that much alone."""

    def likely(share, total):
        return share >= share.amax(-1, keepdim=True).clamp(max=p)

    return hide(logits, p, likely)


@exercise.mistake
def threshold_alone(logits, p):
    """Tokens with a probability of at least p stayed. It is the *sum* that is to reach p: with
    twenty likely tokens none of them has that much alone."""
    return logits.masked_fill(torch.softmax(logits, -1) < p, -torch.inf)


@exercise.mistake
def not_sorted(logits, p):
    """The sum ran over the vocabulary as it is ordered, and not from the likeliest down."""
    shares = torch.softmax(logits, -1)
    return logits.masked_fill(shares.cumsum(-1) - shares >= p, -torch.inf)


@exercise.mistake
def not_brought_back(logits, p):
    """The marks were left in sorted order: the first places of the vocabulary were kept, whatever
    tokens are there. How do they get back?"""
    shares = torch.softmax(logits, -1).sort(dim=-1, descending=True).values
    return logits.masked_fill(shares.cumsum(-1) - shares >= p, -torch.inf)


@exercise.mistake
def sorted_logits(logits, p):
    """The sorted logits were returned. Token 0 is then whichever was likeliest: how does each one
    get back to its place?"""
    ordered = logits.sort(dim=-1, descending=True, stable=True).values
    shares = torch.softmax(ordered, -1)
    return ordered.masked_fill(shares.cumsum(-1) - shares >= p, -torch.inf)


@exercise.mistake
def no_peak(logits, p):
    """Large logits give NaN: exp(90) no longer fits into a float32, and then nothing or everything
    is hidden. What can be subtracted from all logits without changing a probability?"""
    shares = logits.exp() / logits.exp().sum(-1, keepdim=True)
    return hide(logits, p, lambda share, total: total - share < p, shares=shares)


@exercise.mistake
def higher_ids(logits, p):
    """Of equally likely tokens the higher ids stayed: the lower ones come first."""
    return top_p(logits.flip(-1), p).flip(-1)


@exercise.mistake
def filled_with_zero(logits, p):
    """Hidden tokens have the logit 0, which is a logit like any other. What has the probability
    0?"""
    return hide(logits, p, lambda share, total: total - share < p, filler=0.0)


@exercise.mistake
def probabilities(logits, p):
    """Probabilities were returned, and hidden tokens have 0. Logits are asked for: leave the kept
    ones as they are."""
    return torch.softmax(top_p(logits, p), -1)


@exercise.mistake
def logits_summed(logits, p):
    """The logits were summed, and not their probabilities: logits can be negative, and sum to
    anything."""
    return hide(logits, p, lambda share, total: total - share < p, shares=logits)


@exercise.alternative
def token_by_token(logits, p):
    rows, shares = logits.reshape(-1, logits.shape[-1]), torch.softmax(logits.detach(), -1)
    kept = torch.zeros_like(rows, dtype=torch.bool)
    for i, row in enumerate(shares.reshape(rows.shape)):
        total = 0.0
        for token in row.argsort(descending=True, stable=True):
            if total >= p:
                break
            kept[i, token] = True
            total = total + row[token]
    return torch.where(kept, rows, -torch.inf).reshape(logits.shape)


@exercise.alternative
def shifted_sum(logits, p):
    ordered, order = torch.sort(logits, dim=-1, descending=True, stable=True)
    total = torch.softmax(ordered, -1).cumsum(-1)
    before = torch.cat([torch.zeros_like(total[..., :1]), total[..., :-1]], dim=-1)
    cut = ordered.masked_fill(before >= p, float("-inf"))
    return cut.gather(-1, order.argsort(-1))
