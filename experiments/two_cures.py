"""Lesson 05: what do feed-forward networks cure in a stack of attention layers, and what do
residual connections cure?

A line is eight tokens of sixteen properties, each +1 or -1, the last always +1 unless the arm says
otherwise. For each token a model has to say its first property ("copy"), or whether its first two
differ ("XOR").
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
D_MODEL, N = 16, 8
STEPS = {"XOR": 3000, "copy": 2000}
LEARNING_RATE = 0.003
EVERY = 100  # steps from one measurement to the next
PLAIN = {"feed_forward": False, "residual": False, "constant": True}
ARMS = {  # (task, layers): what the stacks have
    ("XOR", 2): {
        "attention, no constant": {**PLAIN, "constant": False},
        "attention": PLAIN,
        "attention, feed-forward": {**PLAIN, "feed_forward": True},
    },
    ("copy", 6): {
        "attention": PLAIN,
        "attention, feed-forward": {**PLAIN, "feed_forward": True},
        "attention, residual": {**PLAIN, "residual": True},
        "attention, feed-forward, residual": {**PLAIN, "feed_forward": True, "residual": True},
    },
}


def stack(layers: int, feed_forward: bool, residual: bool) -> nn.Sequential:
    """Make a stack of attention layers, each followed by a feed-forward layer where asked."""
    parts = []
    for _ in range(layers):
        parts.append(SelfAttention(D_MODEL, D_MODEL, D_MODEL))
        if feed_forward:
            parts.append(FeedForward(D_MODEL, 4 * D_MODEL))
    return nn.Sequential(*[Residual(part, D_MODEL) if residual else part for part in parts])


def lines(
    task: str, size: int, seed: int, constant: bool, n: int = N
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of lines without end, and the answer that each token calls for, 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        bits = torch.randint(0, 2, (size, n, D_MODEL), generator=generator)
        answers = bits[..., 0] if task == "copy" else bits[..., 0] ^ bits[..., 1]
        x = 2.0 * bits - 1
        if constant:
            x[..., -1] = 1
        yield x, answers.float()


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross-entropy of the answers."""
    x, answers = batch
    return F.binary_cross_entropy_with_logits(model(x).squeeze(-1), answers)


@torch.no_grad()
def accuracy(model: nn.Module, batch: tuple[Tensor, Tensor]) -> float:
    """Return the share of tokens with the right answer."""
    x, answers = batch
    return ((model(x).squeeze(-1) > 0) == (answers > 0)).float().mean().item()


@torch.no_grad()
def by_opposite(model: nn.Module, batch: tuple[Tensor, Tensor]) -> list[list[float]]:
    """Return the share of right answers without a token's opposite in its line, and with it.

    A row for each of the four cases of a token's first two properties; the opposite of a case has
    both of them flipped.
    """
    x, answers = batch
    right = ((model(x).squeeze(-1) > 0) == (answers > 0)).float()
    cases = (x[..., 0] > 0) * 2 + (x[..., 1] > 0).long()
    met = (cases.unsqueeze(-1) == 3 - cases.unsqueeze(-2)).any(-1)
    return [
        [round(right[(cases == case) & (met == there)].mean().item(), 4) for there in (False, True)]
        for case in range(4)
    ]


def spread(x: Tensor) -> float:
    """Measure how far tokens are from their line's mean, relative to their size."""
    apart = (x - x.mean(-2, keepdim=True)).norm(dim=(-2, -1))
    return (apart / x.norm(dim=(-2, -1))).mean().item()


def measure_one(task: str, layers: int, seed: int, constant: bool, **parts: bool) -> dict:
    """Train one stack; return its accuracy by steps, and on lines of a single token at the end."""
    with training.seeded(seed):
        inside = stack(layers, **parts)
        model = nn.Sequential(inside, nn.Linear(D_MODEL, 1))
    held_out = next(lines(task, 1000, 1000 + seed, constant))
    alone = next(lines(task, 8000, 2000 + seed, constant, n=1))
    budget = {"steps": STEPS[task], "learning_rate": LEARNING_RATE}
    steps, shares, before = 0, [accuracy(model, held_out)], spread(inside(held_out[0]))

    def watched(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        nonlocal steps
        if steps and steps % EVERY == 0:
            shares.append(accuracy(model, held_out))
        steps += 1
        return loss(model, batch)

    training.train(model, lines(task, 32, seed, constant), watched, **budget)
    shares.append(accuracy(model, held_out))
    final = {"loss": loss(model, held_out).item(), "alone": accuracy(model, alone)}
    spreads = {"before": before, "after": spread(inside(held_out[0]))}
    numbers = {name: round(value, 9) for name, value in {**final, **spreads}.items()}
    run = {"accuracy": [round(share, 4) for share in shares], **numbers}
    if task == "XOR" and {"constant": constant, **parts} == PLAIN:
        run["by_opposite"] = by_opposite(model, held_out)
    return run


def measure() -> dict:
    """Return accuracy by task, stack, seed and steps."""
    figures = {}
    for (task, layers), arms in ARMS.items():
        for name, arm in arms.items():
            runs = [measure_one(task, layers, seed, **arm) for seed in SEEDS]
            figures.setdefault(task, {})[name] = runs
    return {"every": EVERY, "steps": STEPS, "learning_rate": LEARNING_RATE, **figures}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    rows = []
    for task, layers in ARMS:
        rows.append(f"{task}, {layers} layers: accuracy after 500 and all steps, on lone tokens")
        for name, runs in figures[task].items():
            shown = [
                f"{run['accuracy'][5]:.2f} {run['accuracy'][-1]:.2f} {run['alone']:.2f}"
                for run in runs
            ]
            rows.append(f"  {name:34}" + "  ".join(shown))
    return rows
