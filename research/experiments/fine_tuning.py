"""Lesson 16: the page's fine-tuning at three times its rate, which follows the labels further."""

from typing import Any

import torch
from torch import Tensor, nn

from course_lib.data import home_commands
from course_lib.instruments import intents
from course_lib.pretrained import minilm
from course_lib.pretraining import classify

LESSON = "16"
SEEDS = (0,)
LABELS, LISTS = 100, ("known", "new wordings")
HEAD, RATE = 0.03, 0.0015  # of the head alone, and then of everything


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


def measure_one(seed: int) -> dict[str, float]:
    """Train the head, then everything; return the shares right of both lists."""
    commands = home_commands.split(1000, 200, seed)
    labelled, model = commands["learning"][:LABELS], WithEncoder()
    intents.train(model, labelled, HEAD, seed, steps=20)
    model.encoder.requires_grad_(True)
    intents.train(model, labelled, RATE, seed, steps=60)
    return {name: round(intents.share_right(model, commands[name]), 4) for name in LISTS}


def measure() -> dict[str, Any]:
    """Return the shares right of both lists, by seed."""
    torch.set_num_threads(1)
    return {"rate": RATE, "runs": [measure_one(seed) for seed in SEEDS]}


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"rate {figures['rate']}, seed {seed}: "
        + ", ".join(f"{name} {share:.3f}" for name, share in run.items())
        for seed, run in zip(SEEDS, figures["runs"], strict=True)
    ]
