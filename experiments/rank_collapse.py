"""Lesson 05: do stacks keep words apart and change them, with feed-forward layers and without?

A line is eight words of sixteen properties, each yes or no. What a model has to say of each word
is one of its properties ("copy"), or whether two of them differ ("either or").
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.feed_forward import FeedForward
from course_lib.instruments import training
from course_lib.instruments.deep_stack import Residual
from course_lib.self_attention import SelfAttention

LESSON = "05"
SEEDS = (0, 1, 2)
DEPTHS = (1, 2, 4, 6)
D_MODEL, N = 16, 8
SETTINGS = {"steps": 500, "learning_rate": 0.003}
TASKS = ("copy", "either or")
MODELS = {  # whether it has feed-forward layers, and residual connections
    "attention": (False, False),
    "attention, feed-forward": (True, False),
    "attention, residual": (False, True),
    "attention, feed-forward, residual": (True, True),
}


def stack(depth: int, feed_forward: bool, residual: bool) -> nn.Sequential:
    """Make a stack of attention layers, each followed by a feed-forward layer where asked."""
    layers = []
    for _ in range(depth):
        layers.append(SelfAttention(D_MODEL, D_MODEL, D_MODEL))
        if feed_forward:
            layers.append(FeedForward(D_MODEL, 4 * D_MODEL))
    return nn.Sequential(*[Residual(layer, D_MODEL) if residual else layer for layer in layers])


def lines(task: str, size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of lines without end, and the answer that each word calls for, 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        bits = torch.randint(0, 2, (size, N, D_MODEL), generator=generator)
        answers = bits[..., 0] if task == "copy" else bits[..., 0] ^ bits[..., 1]
        yield 2.0 * bits - 1, answers.float()


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross-entropy of the answers."""
    x, answers = batch
    return F.binary_cross_entropy_with_logits(model(x).squeeze(-1), answers)


def spread(x: Tensor) -> float:
    """Measure how far words are from their line's mean, relative to their size."""
    apart = (x - x.mean(-2, keepdim=True)).norm(dim=(-2, -1))
    return (apart / x.norm(dim=(-2, -1))).mean().item()


def measure_one(task: str, model: str, depth: int, seed: int) -> dict[str, float]:
    """Train one stack; return its accuracy, and its words' spread before and after."""
    with training.seeded(seed):
        layers = stack(depth, *MODELS[model])
        whole = nn.Sequential(layers, nn.Linear(D_MODEL, 1))
    x, answers = next(lines(task, 1000, seed=1000 + seed))
    before = spread(layers(x))
    training.train(whole, lines(task, 32, seed), loss, **SETTINGS)
    right = (whole(x).squeeze(-1) > 0) == (answers > 0)
    return {"accuracy": right.float().mean().item(), "before": before, "after": spread(layers(x))}


def measure() -> dict:
    """Return accuracy and spread by task, model, seed and depth."""
    found = {}
    for task in TASKS:
        for model in MODELS:
            runs = [[measure_one(task, model, d, seed) for d in DEPTHS] for seed in SEEDS]
            found.setdefault(task, {})[model] = [
                {figure: [round(one[figure], 9) for one in run] for figure in run[0]}
                for run in runs
            ]
    return {"depths": DEPTHS, "settings": SETTINGS, **found}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    rows = []
    for task in TASKS:
        rows.append(f"{task}: mean accuracy at depths {', '.join(map(str, DEPTHS))}")
        for model, runs in figures[task].items():
            shares = torch.tensor([run["accuracy"] for run in runs]).mean(0).tolist()
            rows.append(f"  {model:34}" + "  ".join(f"{share:.0%}" for share in shares))
    return rows
