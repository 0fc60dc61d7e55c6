"""Lesson 03: how often a token gives its largest weight to itself.

Lecture L3 speaks of causal attention, and so do we: version 1 and random matrices on the vectors
of Shakespeare's words, and each head of a trained decoder, SmolLM2.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import dot_scores
from course_lib.data import shakespeare, word_vectors
from course_lib.masks import causal_mask
from course_lib.pretrained import real_heads, smollm2

LESSON = "03"
SEEDS = (0,)
STRETCHES, STRETCH = 500, 8  # of word vectors
TEXTS, LENGTH = 50, 32  # of tokens


def prefer_themselves(scores: Tensor) -> float:
    """Return the share of tokens whose causal score with themselves is their largest.

    A tie counts, as with a repeated word.
    """
    scores = scores.masked_fill(~causal_mask(scores.shape[-1]), float("-inf"))
    own = scores.diagonal(dim1=-2, dim2=-1)
    return (own > scores.amax(-1) - 1e-6).float().mean().item()


def of_word_vectors() -> dict[str, Any]:
    """Return that share in stretches of Shakespeare, for version 1 and for random matrices."""
    words = word_vectors.from_shakespeare()
    numbers = {word: number for number, word in enumerate(words.vocab)}
    play = shakespeare.words(shakespeare.complete_works())
    text = torch.tensor([numbers[word] for word in play if word in numbers])
    generator = torch.Generator().manual_seed(0)
    starts = torch.randint(0, len(text) - STRETCH, (STRETCHES, 1), generator=generator)
    lines = words.vectors[text[starts + torch.arange(STRETCH)]]
    unit = F.normalize(lines, dim=-1)
    drawn = []
    for seed in range(10):
        d = lines.shape[-1]
        w_q, w_k = torch.randn(2, d, d, generator=torch.Generator().manual_seed(seed))
        drawn.append(prefer_themselves(dot_scores(unit @ w_q, unit @ w_k)))
    return {
        "chance": (1 / torch.arange(1, STRETCH + 1)).mean().item(),
        "version 1": prefer_themselves(dot_scores(lines, lines)),
        "equal norms": prefer_themselves(dot_scores(unit, unit)),
        "random matrices": drawn,
    }


def stretches(model: smollm2.SmolLM2, count: int, length: int) -> Tensor:
    """Draw stretches of Shakespeare's tokens, (count, length)."""
    text = shakespeare.complete_works()
    tokens = torch.tensor(model.tokenizer.encode(text[:2_000_000]).ids)
    generator = torch.Generator().manual_seed(0)
    starts = torch.randint(0, len(tokens) - length, (count, 1), generator=generator)
    return tokens[starts + torch.arange(length)]


def of_heads() -> dict[str, Any]:
    """Return that share for each layer and head of SmolLM2, and of those that prefer the first.

    The first token, which has no choice, is left out; and in "without the first" it is out of the
    others' reach, and so is the second token, which then has none.
    """
    model = smollm2.load()
    weights = real_heads.attention_weights(model, stretches(model, TEXTS, LENGTH))
    best = weights.argmax(-1)[..., 1:]
    itself = (best == torch.arange(1, LENGTH)).float().mean((1, -1))
    first = (best == 0).float().mean((1, -1))
    without = weights[..., 2:, 1:].argmax(-1) == torch.arange(1, LENGTH - 1)
    shares: dict[str, Any] = {
        "itself": itself.tolist(),
        "first token": first.tolist(),
        "without the first": without.float().mean((1, -1)).tolist(),
    }
    return {"chance": (1 / torch.arange(2, LENGTH + 1)).mean().item(), **shares}


def measure() -> dict:
    """Return the shares for word vectors and for the heads of a trained decoder."""
    return {"word vectors": of_word_vectors(), "SmolLM2": of_heads()}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    words, heads = figures["word vectors"], figures["SmolLM2"]
    itself, first = torch.tensor(heads["itself"]), torch.tensor(heads["first token"])
    return [
        *(f"{name}: {share}" for name, share in words.items()),
        f"chance {heads['chance']:.3f}",
        f"itself: mean {itself.mean():.3f}, {(itself > 0.5).sum()} of {itself.numel()} heads over "
        f"half; largest {itself.max():.2f}",
        f"the first token: mean {first.mean():.3f}, {(first > 0.5).sum()} heads over half",
    ]
