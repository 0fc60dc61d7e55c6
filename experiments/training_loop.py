"""Lesson 10: what each part of the training loop adds, on one small model, at equal steps.

The whole loop has warm-up, decay, clipping and weight decay; each row leaves one out, and the last
one all four. All have the same model, batches and peak learning rate, which is high on purpose.
"""

from typing import Any

import torch
from torch import Tensor, nn

from course_lib.instruments import training
from course_lib.language_model import LanguageModel, cross_entropy, examples
from experiments.language_model import split

LESSON = "10"
SEEDS = (0, 1, 2)
MODEL: dict[str, Any] = {"layers": 2, "d_model": 64, "heads": 4, "d_ff": 256, "max_length": 64}
BATCH, STEPS, RATE, WARM_UP, CLIP, WEIGHT_DECAY = 16, 500, 0.02, 50, 1.0, 0.1
PARTS = ("warm-up", "decay", "clipping", "weight decay")


def measure() -> dict[str, Any]:
    """Return the held-out loss and the losses on the way of each loop and seed."""
    loops = {"all four": PARTS}
    loops |= {f"no {part}": tuple(x for x in PARTS if x != part) for part in PARTS}
    loops["none of them"] = ()
    settings = {"batch": BATCH, "steps": STEPS, "learning_rate": RATE, "warm_up": WARM_UP}
    runs = {name: [run(parts, seed) for seed in SEEDS] for name, parts in loops.items()}
    return {"settings": MODEL | settings, "runs": runs}


def table(figures: dict[str, Any]) -> list[str]:
    """Return a line for each loop: the held-out loss of each seed."""
    return [
        f"{name:14} " + "  ".join(f"{found['held_out']:.3f}" for found in runs)
        for name, runs in figures["runs"].items()
    ]


def rate(step: int, parts: tuple[str, ...]) -> float:
    """Return the learning rate of a step: it rises, and then falls to 0, each if it is a part."""
    rising = min(1, (step + 1) / WARM_UP) if "warm-up" in parts else 1
    falling = min(1, (STEPS - step) / (STEPS - WARM_UP)) if "decay" in parts else 1
    return RATE * rising * falling


def run(parts: tuple[str, ...], seed: int) -> dict[str, Any]:
    """Train by a loop of these parts; return its held-out loss, and mean losses on the way."""
    tokens, held_out, vocab = split()
    with training.seeded(seed):
        model = LanguageModel(len(vocab), **MODEL)
    decay = WEIGHT_DECAY if "weight decay" in parts else 0.0
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=decay)
    generator, n, losses = torch.Generator().manual_seed(seed), MODEL["max_length"], []
    for step in range(STEPS):
        starts = torch.randint(len(tokens) - n, (BATCH, 1), generator=generator)
        stretches = tokens[starts + torch.arange(n + 1)]
        loss = cross_entropy(model(stretches[:, :-1]), stretches[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        if "clipping" in parts:
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.param_groups[0]["lr"] = rate(step, parts)
        optimizer.step()
        losses.append(loss.item())
    means = torch.tensor(losses).view(-1, 10).mean(-1)
    return {"held_out": held_out_loss(model, held_out[:20_000]), "losses": means.tolist()}


@torch.no_grad()
def held_out_loss(model: nn.Module, tokens: Tensor) -> float:
    """Return the mean loss over whole windows."""
    inputs, targets = examples(tokens, MODEL["max_length"], MODEL["max_length"])
    return cross_entropy(model(inputs), targets).item()
