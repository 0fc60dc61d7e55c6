"""Which action of a smart home does a sentence mean? Models that learn it (lesson 16)."""

import random
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import home_commands
from course_lib.data.home_commands import Command
from course_lib.instruments import training

ACTIONS = sorted({name for name, *_ in home_commands.ACTIONS})
BATCH = 16


class WithCounts(nn.Module):
    """The baseline: a linear head on how often a text has each word of the labelled commands."""

    def __init__(self, labelled: Sequence[Command]):
        super().__init__()
        self.words = sorted({word for x in labelled for word in x.said.split()})
        self.head = nn.Linear(len(self.words), len(ACTIONS))
        # like the head on an encoder, it begins with zeros
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def counts(self, texts: Sequence[str]) -> Float[Tensor, "batch words"]:
        """Count each word in each text."""
        rows = [[text.split().count(word) for word in self.words] for text in texts]
        return torch.tensor(rows, dtype=torch.float)

    def forward(self, texts: Sequence[str]) -> Float[Tensor, "batch actions"]:
        """Score the actions of each text."""
        return self.head(self.counts(texts))


def labels(commands: Sequence[Command]) -> Int[Tensor, " m"]:
    """Return the number of each command's action."""
    return torch.tensor([ACTIONS.index(home_commands.action(x)) for x in commands])


def train(
    model: nn.Module,
    labelled: Sequence[Command],
    learning_rate: float,
    seed: int,
    **budget: Any,
) -> training.History:
    """Train what is not frozen of a model that scores texts, on batches of 16 commands.

    `budget` are the steps, and the seconds, of `training.train`.
    """
    draw = random.Random(seed)
    batches = iter(lambda: draw.sample(labelled, BATCH), None)

    def loss(model: nn.Module, batch: Sequence[Command]) -> Tensor:
        return F.cross_entropy(model([x.said for x in batch]), labels(batch))

    return training.train(model, batches, loss, learning_rate=learning_rate, seed=seed, **budget)


@torch.no_grad()
def act(model: nn.Module, text: str) -> str:
    """Return the likeliest action, and its probability."""
    chances = model([text]).softmax(-1)[0]
    return f"{ACTIONS[int(chances.argmax())]} {chances.max():.0%}"


@torch.no_grad()
def share_right(model: nn.Module, commands: Sequence[Command]) -> float:
    """Return the share of commands whose action has the highest score."""
    texts = [x.said for x in commands]
    parts = [model(texts[i : i + 50]) for i in range(0, len(texts), 50)]
    return (torch.cat(parts).argmax(-1) == labels(commands)).float().mean().item()
