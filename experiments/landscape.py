"""Lesson 07: the loss around stacks of 8 blocks with a last norm, with and without residuals."""

import torch

from course_lib.add_norm import PreNorm
from course_lib.data import characters
from course_lib.instruments import loss_landscape
from course_lib.instruments.deep_stack import NormAlone
from experiments import stacks

LESSON = "07"
SEEDS = (0, 1, 2)

BLOCKS = 8
WRAPS = {"norm": NormAlone, "residual and norm": PreNorm}
BUDGET = {"steps": 200, "learning_rate": 0.003}
DISTANCES = torch.linspace(-1, 1, 25)
STRETCHES = 64  # of held-out text, on which each point's loss is measured


def measure() -> dict:
    """Return a surface for each kind and seed: the model's seed draws the directions too."""
    return {
        "blocks": BLOCKS,
        "settings": {**stacks.SETTINGS, **BUDGET, "stretches": STRETCHES},
        "distances": [round(distance, 4) for distance in DISTANCES.tolist()],
        "trivial": stacks.trivial_loss(),
        "surfaces": {
            name: [_surface(wrap, seed) for seed in SEEDS] for name, wrap in WRAPS.items()
        },
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"trivial loss {figures['trivial']:.3f}"]
    for name, seeds in figures["surfaces"].items():
        for seed, losses in enumerate(map(torch.tensor, seeds)):
            middle = len(losses) // 2
            better = (losses < figures["trivial"] - 0.1).float().mean()
            lines.append(
                f"{name:19} seed {seed}: centre {losses[middle, middle]:.2f}, "
                f"lowest {losses.min():.2f}, highest {losses.max():.2f}, "
                f"better than the trivial loss by 0.1: {better:.0%}"
            )
    return lines


def _surface(wrap, seed: int) -> list[list[float]]:
    """Train one stack, and return the loss around it, to three digits after the point."""
    model = stacks.new(wrap, BLOCKS, seed, last_norm=True)
    stacks.train(model, seed, **BUDGET)
    _, held_out = characters.split()
    batch = next(characters.batches(held_out, stacks.SETTINGS["n"], STRETCHES, 0))
    generator = torch.Generator().manual_seed(seed)
    losses = loss_landscape.surface(model, stacks.loss, batch, DISTANCES, generator)
    return [[round(loss, 3) for loss in row] for row in losses.tolist()]
