"""Lesson 16: what fine-tuning wins where the labels are, and loses beyond, at three rates."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.data import home_commands
from course_lib.instruments import intents
from course_lib.pretrained import minilm
from course_lib.pretraining import classify

LESSON = "16"
SEEDS = (0, 1, 2)
LABELS, LISTS = 100, ("known", "new wordings")
HEAD, RATES = 0.03, (0.0001, 0.0005, 0.0015)  # of the head alone, and then of everything


class WithEncoder(nn.Module):
    """A head on MiniLM, which is frozen at first."""

    def __init__(self):
        super().__init__()
        self.encoder = minilm.load().requires_grad_(False)
        self.w = nn.Parameter(torch.zeros(384, len(intents.ACTIONS)))
        self.b = nn.Parameter(torch.zeros(len(intents.ACTIONS)))

    def forward(self, texts: list[str]) -> Tensor:
        """Score the actions of each text."""
        tokens, mask = self.encoder.tokens(texts)
        return classify(self.encoder(tokens, mask), mask.squeeze(-2), self.w, self.b)


def measure_one(seed: int) -> dict[str, dict[str, float]]:
    """Train the head, then everything at each rate; return the shares right of both lists."""
    commands = home_commands.split(1000, 200, seed)
    labelled, frozen = commands["learning"][:LABELS], WithEncoder()

    def right(model: nn.Module) -> dict[str, float]:
        return {name: round(intents.share_right(model, commands[name]), 4) for name in LISTS}

    intents.train(frozen, labelled, HEAD, seed, steps=20)
    found = {"frozen": right(frozen)}
    for rate in RATES:
        tuned = copy.deepcopy(frozen)
        tuned.encoder.requires_grad_(True)
        intents.train(tuned, labelled, rate, seed, steps=60)
        found[str(rate)] = right(tuned)
    return found


def measure() -> dict[str, Any]:
    """Return the shares right of both lists, frozen and by rate, for each seed."""
    torch.set_num_threads(1)
    return {"runs": [measure_one(seed) for seed in SEEDS]}


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{name:7} " + "; ".join(f"{x}: {[run[name][x] for run in figures['runs']]}" for x in LISTS)
        for name in figures["runs"][0]
    ]
