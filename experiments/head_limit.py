"""Lesson 06: what lifts one head over the bound h / r, and what does not."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.instruments import training
from course_lib.self_attention import scaled_dot_product_attention
from experiments.multi_head import POINTERS, pointers, squared_error

LESSON = "06"
SEEDS = (0, 1, 2)

WANTED = 2  # numbers that each token must fetch
D_MODEL = 32
SETTINGS = {"steps": 800, "batch": 64, "learning_rate": 0.01}
HIDDEN = 128  # of the networks

OWN, SEES = "each number in a column of its own", "a network that sees the names as readout"
CHANGES = (
    "none",
    "a network as readout",
    SEES,
    OWN,
    f"{OWN}, {SEES}",
    "queries and keys see the numbers",
    "a network for the values",
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
    return [f"{name:78}" + "".join(f"{share:8.3f}" for share in shares) for name, shares in rows]


def network(d_in: int, d_out: int) -> nn.Module:
    """Return a small network with one hidden layer."""
    return nn.Sequential(nn.Linear(d_in, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, d_out))


class Head(nn.Module):
    """One head: names choose, tokens are carried."""

    def __init__(self, change: str):
        super().__init__()
        self.w_q, self.w_k = (nn.Linear(D_MODEL, D_MODEL) for _ in range(2))
        self.w_v = nn.Linear(D_MODEL, D_MODEL)
        if change == "a network for the values":
            self.w_v = network(D_MODEL, D_MODEL)

    def forward(self, names: Tensor, tokens: Tensor) -> Tensor:
        """Return what each token finds."""
        return scaled_dot_product_attention(self.w_q(names), self.w_k(names), self.w_v(tokens))


class Fetcher(nn.Module):
    """One head and a readout of the two numbers, with one change."""

    def __init__(self, change: str):
        super().__init__()
        self.change = change
        self.layers = nn.ModuleList(Head(change) for _ in range(1 + (change == "a second layer")))
        self.readout = nn.Linear(D_MODEL, WANTED)
        if "as readout" in change:
            self.readout = network(D_MODEL * (1 + (SEES in change)), WANTED)

    def forward(self, names: Tensor, tokens: Tensor) -> Tensor:
        """Return the numbers that each token has found."""
        if OWN in self.change:
            tokens = own_columns(tokens)
        chosen_by = tokens if self.change == "queries and keys see the numbers" else names
        first, *second = self.layers
        found = first(chosen_by, tokens)
        for layer in second:
            # the second head carries what the first one found, and the first is not lost
            found = found + layer(chosen_by, tokens + found)
        if SEES in self.change:
            found = torch.cat([found, names], dim=-1)
        return self.readout(found)


def own_columns(tokens: Tensor, n: int = POINTERS["n"]) -> Tensor:
    """Move each token's number from the last column to one that only this name uses."""
    own, number = tokens[..., :n], tokens[..., -1:]
    # names take the first columns: own and wanted
    free = tokens.shape[-1] - (1 + WANTED) * n
    return torch.cat([tokens[..., :-free], F.pad(own * number, (0, free - n))], dim=-1)


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
