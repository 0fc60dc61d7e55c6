"""Draw only among the k likeliest tokens."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.language_model import top_k

exercise = Exercise(
    reference=top_k,
    lesson="10_sampling",
    title="Only the k likeliest",
    minutes=4,
    difficulty=1,
    hints=(
        "Which logit gives a probability of 0 after the softmax?",
        "Four tokens share the third place and k is 3. What does `logits >= the third largest` "
        "keep, and what keeps exactly three?",
        "If you sort, the order says which tokens stay. How do you get from places in the order "
        "back to places in the vocabulary?",
    ),
    clauses={
        "Of equal logits the lower ids stay": "higher_ids",
        "k above the vocabulary keeps all": GIVEN,
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two of three", (draw.normal(3), 2)
    yield "one of five", (draw.normal(5), 1)
    yield "three of seven, for each text", (draw.normal(4, 7), 3)
    yield "two batch dimensions", (draw.normal(2, 3, 6), 2)
    yield "equal logits", (draw.normal(3, 1).expand(3, 6).contiguous(), 2)
    ties = draw.integers(0, 3, 4, 9).float()
    yield "many ties", (ties, 4)
    yield "some are hidden already", (draw.normal(6).masked_fill(draw.mask(6), -torch.inf), 5)


@exercise.requires("k tokens keep their logits, and no hidden one had a larger logit", points=2)
def the_largest(answer, draw: Draw):
    logits = draw.normal(5, 12)
    k = draw.number(2, 8)
    found = answer(logits, k)
    kept = found != -torch.inf
    least = logits.masked_fill(~kept, torch.inf).amin(-1)
    return (
        (kept.sum(-1) == k).all()
        and torch.equal(found[kept], logits[kept])
        and (logits.masked_fill(kept, -torch.inf).amax(-1) <= least).all()
    )


@exercise.requires("of equal logits, the lower ids stay")
def ties(answer, draw: Draw):
    k = draw.number(1, 30)
    found = answer(torch.zeros(2, 40), k)
    return torch.equal(found[0] == 0, torch.arange(40) < k) and torch.equal(*found)


def hide(logits, kept, filler=-torch.inf):
    return logits.masked_fill(~kept, filler)


def ranked(logits, k, **how):
    order = logits.argsort(dim=-1, stable=True, **{"descending": True} | how)
    return torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order[..., :k], True)


@exercise.mistake
def smallest(logits, k):
    """The k smallest logits stayed. Which ones are the likeliest?"""
    return hide(logits, ranked(logits, k, descending=False))


@exercise.mistake
def equals_stay(logits, k):
    """Tokens as large as the k-th stayed all, so there can be more than k. Of equals the lower ids
    stay: how do you keep exactly k?"""
    least = logits.topk(k).values[..., -1:]
    return hide(logits, logits >= least)


@exercise.mistake
def higher_ids(logits, k):
    """Of equal logits the higher ids stayed. Sorting upwards and reading from the end turns equals
    round too: what does `stable` promise?"""
    return hide(logits.flip(-1), ranked(logits.flip(-1), k)).flip(-1)


@exercise.mistake
def filled_with_zero(logits, k):
    """Hidden tokens have the logit 0, which is a logit like any other: exp(0) is 1. What has the
    probability 0?"""
    return hide(logits, ranked(logits, k), 0.0)


@exercise.mistake
def large_negative(logits, k):
    """Hidden tokens have a large negative logit. Where all logits are as low, that is no longer
    nothing: which number is below all others?"""
    return hide(logits, ranked(logits, k), -1e9)


@exercise.mistake
def one_too_few(logits, k):
    """One token too few stays: the k-th largest is one of k."""
    order = logits.argsort(dim=-1, descending=True, stable=True)
    kept = torch.zeros_like(logits, dtype=torch.bool)
    return hide(logits, kept.scatter(-1, order[..., : k - 1], True))


@exercise.mistake
def one_too_many(logits, k):
    """One token too many stays."""
    return top_k(logits, k + 1)


@exercise.mistake
def values_alone(logits, k):
    """The kept logits came back alone, without the others' places. Which token would the first of
    them be?"""
    return logits.topk(k).values


@exercise.mistake
def probabilities(logits, k):
    """Probabilities were returned. The temperature and the next filter take logits, so leave the
    kept ones as they are."""
    return torch.softmax(top_k(logits, k), -1)


@exercise.mistake
def over_the_batch(logits, k):
    """k of all tokens of the batch stayed, and not k for each text. Along which axis are they
    ranked?"""
    return top_k(logits.flatten(), k).view_as(logits)


@exercise.alternative
def ranks(logits, k):
    place = torch.sort(logits, dim=-1, descending=True, stable=True).indices.argsort(-1)
    return torch.where(place < k, logits, -torch.inf)


@exercise.alternative
def counting_the_larger(logits, k):
    n = logits.shape[-1]
    ids = torch.arange(n)
    mine, other = logits.unsqueeze(-1), logits.unsqueeze(-2)
    before = (other > mine) | ((other == mine) & (ids < ids.unsqueeze(-1)))
    return logits.masked_fill(before.sum(-1) >= k, float("-inf"))
