"""Lesson 07: how large the residual stream is at each level of a trained decoder, SmolLM2."""

import torch

from course_lib.masks import causal_mask
from course_lib.pretrained import smollm2
from research.experiments.itself import stretches

LESSON = "07"
SEEDS = (0,)
TEXTS, LENGTH = 50, 32  # stretches of Shakespeare, in tokens


def measure() -> dict:
    """Return root mean squares by level: the first tokens', and the other tokens' quantiles.

    And for the first tokens the share of their squared norm that is in its largest column.
    """
    model = smollm2.load()
    levels = streams(model, stretches(model, TEXTS, LENGTH))
    sizes = levels.square().mean(-1).sqrt()
    first, others = sizes[:, :, 0], sizes[:, :, 1:].flatten(1)
    squares = levels[:, :, 0].square()
    return {
        "first": [round(x, 3) for x in first.median(-1).values.tolist()],
        "first, extremes": [
            [round(x, 3) for x in extreme.tolist()] for extreme in (first.amin(-1), first.amax(-1))
        ],
        "others": {
            f"{q:g}": [round(x, 3) for x in others.quantile(q, dim=-1).tolist()]
            for q in (0.05, 0.5, 0.95)
        },
        "largest column": squares.mean(1).argmax(-1).tolist(),
        "its share": [
            round(x, 3) for x in (squares.amax(-1) / squares.sum(-1)).median(-1).values.tolist()
        ],
    }


@torch.no_grad()
def streams(model: smollm2.SmolLM2, tokens: torch.Tensor) -> torch.Tensor:
    """Return the stream as it enters the first block, and as it leaves each: level first."""
    n = tokens.shape[-1]
    for rule in model.rules:
        rule.places = torch.arange(n)
    found = [model.words(tokens)]
    for block in model.blocks:
        found.append(block(found[-1], causal_mask(n)))
    return torch.stack(found)


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"level {level:2}: first {first:8.2f}, {share:.0%} of it one column; others {other:6.2f}"
        for level, (first, share, other) in enumerate(
            zip(figures["first"], figures["its share"], figures["others"]["0.5"], strict=True)
        )
    ]
