"""Lesson 04: a letter that was read long ago, from beyond the length that was trained on.

A text of random letters has one mark, "!", before one letter. At each "?" behind it the model must
name that letter. So it needs order (which letter follows the mark?) and reach.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.instruments import training
from course_lib.instruments.position_schemes import NoPositions, Rotary
from experiments.extrapolation import LanguageModel

LESSON = "04"
SEEDS = (0, 1, 2)
N, LONGEST = 32, 128
LETTERS, MARK, ASK = 16, 16, 17
BATCH, STEPS, RATE = 32 * N, 1500, 0.005  # tokens a step
TUNING = {"steps": 50, "learning_rate": 0.001}
TESTED = 256


def texts(n: int, size: int, seed: int, first: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield texts whose mark is among the first places, and what is wanted: -1 for nothing."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        tokens = torch.randint(LETTERS, (size, n), generator=generator)
        mark = torch.randint(first, (size, 1), generator=generator)
        named = tokens.gather(1, mark + 1)
        behind = torch.arange(n) > mark + 1
        asks = behind & (torch.rand(size, n, generator=generator) < 1 / 8)
        tokens = tokens.masked_fill(asks, ASK).scatter(1, mark, MARK)
        yield tokens, torch.where(asks, named, -1)


def naming_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross-entropy of the wanted letters."""
    tokens, wanted = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten(), ignore_index=-1)


@torch.no_grad()
def shares(model: LanguageModel, shown: int = LONGEST) -> list[float]:
    """Return the share right up to N tokens, up to 2 N, and beyond; the last `shown` are seen."""
    tokens, wanted = next(texts(LONGEST, TESTED, seed=1000, first=8))
    if shown == LONGEST:
        said = model(tokens).argmax(-1)
    else:
        said = torch.zeros_like(wanted)
        said[:, :shown] = model(tokens[:, :shown]).argmax(-1)
        for end in range(shown, LONGEST):
            said[:, end] = model(tokens[:, end + 1 - shown : end + 1])[:, -1].argmax(-1)
    place = torch.arange(LONGEST).expand_as(wanted)
    right = [
        (said == wanted)[(wanted >= 0) & (place >= start) & (place < end)].float().mean().item()
        for start, end in ((0, N), (N, 2 * N), (2 * N, LONGEST))
    ]
    return right


def train(model: LanguageModel, n: int, seed: int, steps: int, learning_rate: float) -> None:
    """Train on texts of n tokens, with as many tokens a step."""
    batches = texts(n, BATCH // n, seed, n // 4)
    budget = {"steps": steps, "learning_rate": learning_rate}
    training.train(model, batches, naming_loss, seed=seed, **budget)
