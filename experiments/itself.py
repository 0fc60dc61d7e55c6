"""Lesson 03: how often a token gives its largest weight to itself, head by head, in SmolLM2.

Lecture L3 speaks of causal attention with queries and keys, and so do we: a trained decoder.
"""

from typing import Any

import torch
from einops import repeat
from torch import Tensor

from course_lib.attention import dot_scores
from course_lib.data import shakespeare
from course_lib.grouped_query import grouped_query_attention
from course_lib.masks import causal_mask
from course_lib.pretrained import smollm2

LESSON = "03"
SEEDS = (0,)
TEXTS, LENGTH = 50, 32


def measure() -> dict:
    """Return for each layer and head the share of tokens whose largest weight is their own.

    Beside it, the share of those that prefer the first token. The first token, which has no
    choice, is left out.
    """
    itself: list[Tensor] = []
    first: list[Tensor] = []

    def counting(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        groups = repeat(k, "... group key d -> ... (group query) key d", query=3)
        scores = dot_scores(q, groups).masked_fill(~causal_mask(q.shape[-2]), float("-inf"))
        best = scores.argmax(-1)[..., 1:]
        itself.append((best == torch.arange(1, q.shape[-2])).float().mean((0, -1)))
        first.append((best == 0).float().mean((0, -1)))
        return grouped_query_attention(q, k, v, mask)

    model = smollm2.load(rule=counting)
    text = shakespeare.complete_works()
    generator = torch.Generator().manual_seed(0)
    tokens = torch.tensor(model.tokenizer.encode(text[:2_000_000]).ids)
    starts = torch.randint(0, len(tokens) - LENGTH, (TEXTS, 1), generator=generator)
    with torch.no_grad():
        model.states(tokens[starts + torch.arange(LENGTH)])
    shares: dict[str, Any] = {
        "itself": torch.stack(itself).tolist(),
        "first token": torch.stack(first).tolist(),
    }
    return {"chance": (1 / torch.arange(2, LENGTH + 1)).mean().item(), **shares}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    itself, first = torch.tensor(figures["itself"]), torch.tensor(figures["first token"])
    return [
        f"chance {figures['chance']:.3f}",
        f"itself: mean {itself.mean():.3f}, {(itself > 0.5).sum()} of {itself.numel()} heads over "
        f"half; largest {itself.max():.2f}",
        f"the first token: mean {first.mean():.3f}, {(first > 0.5).sum()} heads over half",
    ]
