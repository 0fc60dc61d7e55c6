"""Lesson 06: what lifts one head over the bound h / r, and what does not."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from course_lib.instruments import training
from course_lib.self_attention import scaled_dot_product_attention
from experiments.multi_head import pointers, squared_error

LESSON = "06"
SEEDS = (0, 1, 2)

WANTED = 2  # numbers that each token must fetch
D_MODEL = 32
SETTINGS = {"steps": 1000, "batch": 64, "learning_rate": 0.01}

CHANGES = (
    "none",
    "a nonlinear readout",
    "queries and keys see the numbers",
    "nonlinear values",
    "a second layer",
)


def measure() -> dict:
    """Return the share that one head explains after each change, three runs each."""
    return {
        "settings": SETTINGS,
        "explained": {change: [explained(change, seed) for seed in SEEDS] for change in CHANGES},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    rows = figures["explained"].items()
    return [f"{name:34}" + "".join(f"{share:8.3f}" for share in shares) for name, shares in rows]


def network(d_out: int) -> nn.Module:
    """Return a small network with one hidden layer."""
    return nn.Sequential(nn.Linear(D_MODEL, 64), nn.ReLU(), nn.Linear(64, d_out))


class Head(nn.Module):
    """One head: names choose, tokens are carried."""

    def __init__(self, change: str):
        super().__init__()
        self.w_q, self.w_k = (nn.Linear(D_MODEL, D_MODEL) for _ in range(2))
        self.w_v = network(D_MODEL) if change == "nonlinear values" else nn.Linear(D_MODEL, D_MODEL)

    def forward(self, names: Tensor, tokens: Tensor) -> Tensor:
        """Return what each token finds."""
        return scaled_dot_product_attention(self.w_q(names), self.w_k(names), self.w_v(tokens))


class Fetcher(nn.Module):
    """One head and a readout of the two numbers, with one change."""

    def __init__(self, change: str):
        super().__init__()
        self.change = change
        self.layers = nn.ModuleList(Head(change) for _ in range(1 + (change == "a second layer")))
        nonlinear = change == "a nonlinear readout"
        self.readout = network(WANTED) if nonlinear else nn.Linear(D_MODEL, WANTED)

    def forward(self, names: Tensor, tokens: Tensor) -> Tensor:
        """Return the numbers that each token has found."""
        chosen_by = tokens if self.change == "queries and keys see the numbers" else names
        first, *second = self.layers
        found = first(chosen_by, tokens)
        for layer in second:
            # the second head carries what the first one found, and the first is not lost
            found = found + layer(chosen_by, tokens + found)
        return self.readout(found)


def explained(change: str, seed: int) -> float:
    """Train one head with a change; return the share of the numbers' variance that it explains."""
    generator = torch.Generator().manual_seed(seed)
    with training.seeded(seed):
        model = Fetcher(change)
    training.train(
        model,
        drawn(generator),
        squared_error,
        steps=SETTINGS["steps"],
        learning_rate=SETTINGS["learning_rate"],
        seed=seed,
    )
    batch = pointers(20000, WANTED, generator)
    with torch.no_grad():
        return 1 - (squared_error(model, batch) / batch[-1].square().mean()).item()


def drawn(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Draw batches without an end."""
    while True:
        yield pointers(SETTINGS["batch"], WANTED, generator)
