"""Lesson 16: what does fine-tuning add to a frozen encoder, and what does a larger rate do?

The page's fine-tuning, from three seeds and at two rates, on the commands of `pretraining`: so it
has a counting baseline and a frozen encoder beside it, each fitted to the end.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.instruments import intents, results, training
from course_lib.pretrained import minilm
from course_lib.pretraining import classify
from research.experiments.pretraining import LISTS, SEEDS, split

LESSON = "16"
LABELS = 100
HEAD = {"learning_rate": 0.03, "steps": 20}  # the encoder still frozen
RATES, STEPS = (0.0005, 0.0015), 60  # of everything
SETTINGS = {"labels": LABELS, "head": HEAD, "rates": RATES, "steps": STEPS}
once = partial(results.once, "fine_tuning", SETTINGS)  # what an ended run has measured is kept


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


def measure_one(rate: float, seed: int) -> dict[str, float]:
    """Train the head, then all; return the shares right of both lists."""
    lists = split(seed)
    labelled = lists["learning"][:LABELS]
    with training.seeded(seed):
        model = WithEncoder()
    intents.train(model, labelled, seed=seed, **HEAD)
    model.encoder.requires_grad_(True)
    intents.train(model, labelled, rate, seed, steps=STEPS)
    return {name: intents.share_right(model, lists[name]) for name in LISTS}


def measure() -> dict[str, Any]:
    """Return the shares right by rate and list, one for each seed."""
    torch.set_num_threads(1)
    runs = {
        str(rate): [once(f"{rate} {seed}", partial(measure_one, rate, seed)) for seed in SEEDS]
        for rate in RATES
    }
    shares = {
        rate: {name: [round(run[name], 4) for run in of] for name in LISTS}
        for rate, of in runs.items()
    }
    return {"settings": SETTINGS, "rates": shares}


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text: a number for each seed."""
    return [
        f"rate {rate}, {name}: " + " ".join(f"{share:.3f}" for share in shares)
        for rate, by_list in figures["rates"].items()
        for name, shares in by_list.items()
    ]
