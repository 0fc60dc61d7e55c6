"""Lesson 15: who reads 1,797 small digits best, in equal CPU-seconds, and what is built in?"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import digits
from course_lib.instruments import results, training
from course_lib.vision import VisionTransformer

LESSON = "15"
SEEDS = (0, 1, 2)

CPU_SECONDS = 8.0  # of each training
BATCH, LEARNING_RATE = 64, 0.002
NEIGHBOURS = 3
VIT: dict[str, Any] = {"patch": 2, "layers": 2, "d_model": 48, "heads": 4, "d_ff": 96}
SETTINGS = {"cpu_seconds": CPU_SECONDS, "batch": BATCH, "learning_rate": LEARNING_RATE} | VIT
# how the images come: as they are; all by one order of pixels; and shifted by up to a pixel
CONDITIONS = ("as they are", "pixels shuffled", "shifted copies")


def mlp() -> nn.Module:
    """Make a network of two hidden layers, each pixel connected with each hidden number."""
    layers = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)]
    return nn.Sequential(nn.Flatten(), *layers)


def convolution() -> nn.Module:
    """Make two layers of 3 x 3 windows, each halving the image, and a linear one."""
    layers = []
    for d_in, d_out in ((1, 24), (24, 48)):
        layers += [nn.Conv2d(d_in, d_out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 4, 10))


def vision_transformer() -> nn.Module:
    """Make a Transformer that reads 16 patches of 2 x 2 pixels."""
    return VisionTransformer(digits.CLASSES, 1, digits.SIDE, **VIT)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "MLP": mlp,
    "convolution": convolution,
    "ViT": vision_transformer,
}
once = partial(results.once, "digits", SETTINGS)  # what an ended run has measured is kept


def measure() -> dict:
    """Return shares right on held-out images, by condition, model and seed."""
    (images, shown), _ = digits.split()
    costs = {
        name: once(name, partial(seconds_a_step, make(), images, shown))
        for name, make in MODELS.items()
    }
    steps = {name: round(CPU_SECONDS / cost) for name, cost in costs.items()}
    runs = {
        condition: {
            name: [
                once(f"{condition} {name} {seed}", partial(run, condition, name, seed, steps[name]))
                for seed in SEEDS
            ]
            for name in MODELS
        }
        for condition in CONDITIONS
    }
    return {
        "settings": SETTINGS,
        "parameters": {
            name: sum(p.numel() for p in make().parameters()) for name, make in MODELS.items()
        },
        "milliseconds": {name: 1000 * cost for name, cost in costs.items()},
        "steps": steps,
        "nearest": {condition: nearest(condition) for condition in CONDITIONS},
        "runs": runs,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for condition, models in figures["runs"].items():
        lines.append(f"{condition:16} nearest      {figures['nearest'][condition]:.1%}")
        for name, runs in models.items():
            shares = " ".join(f"{run['right']:.1%}" for run in runs)
            spent = " ".join(f"{run['cpu_seconds']:.1f}" for run in runs)
            lines.append(
                f"{condition:16} {name:12} {shares}   {figures['steps'][name]} steps, {spent} s"
            )
    return lines


def arranged(images: Tensor, condition: str) -> Tensor:
    """Bring the pixels of all images into one random order, where the condition says so."""
    if condition != "pixels shuffled":
        return images
    order = torch.randperm(images[0].numel(), generator=torch.Generator().manual_seed(0))
    return images.flatten(1)[:, order].reshape(images.shape)


def shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """Move each image by -1, 0 or 1 pixel in each direction; what is empty is dark."""
    side = images.shape[-1]
    wide = F.pad(images, (1, 1, 1, 1))
    by = torch.randint(0, 3, (2, len(images), 1), generator=generator)
    rows, columns = by + torch.arange(side)
    batch = torch.arange(len(images))[:, None, None]
    return wide[batch, 0, rows[:, :, None], columns[:, None, :]].unsqueeze(1)


def batches(images: Tensor, shown: Tensor, seed: int, shift: bool = False) -> Iterator:
    """Yield batches without end, in a new order for each round through the images."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(images), generator=generator).split(BATCH):
            chosen = images[rows]
            yield shifted(chosen, generator) if shift else chosen, shown[rows]


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy in nats."""
    images, shown = batch
    return F.cross_entropy(model(images), shown)


def seconds_a_step(model: nn.Module, images: Tensor, shown: Tensor, times: int = 40) -> float:
    """Measure what a step of training costs, in CPU-seconds: the mean of many."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    stream = batches(images, shown, 0)
    for i in range(times + 10):
        if i == 10:
            start = time.process_time()
        optimizer.zero_grad()
        loss(model, next(stream)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.CLIP)
        optimizer.step()
    return (time.process_time() - start) / times


def train(condition: str, name: str, seed: int, steps: int) -> nn.Module:
    """Train a model for so many steps."""
    (images, shown), _ = digits.split()
    with training.seeded(seed):
        model = MODELS[name]()
    stream = batches(arranged(images, condition), shown, seed, shift=condition == "shifted copies")
    training.train(model, stream, loss, steps=steps, learning_rate=LEARNING_RATE, seed=seed)
    return model


def run(condition: str, name: str, seed: int, steps: int) -> dict[str, float]:
    """Train a model; return the share of held-out images that it names, and its CPU-seconds."""
    start = time.process_time()
    model = train(condition, name, seed, steps)
    spent = time.process_time() - start
    return {"right": share_right(model, condition), "cpu_seconds": round(spent, 2)}


@torch.no_grad()
def share_right(model: nn.Module, condition: str) -> float:
    """Return the share of held-out images that a model names."""
    _, (images, shown) = digits.split()
    named = model(arranged(images, condition)).argmax(-1)
    return (named == shown).float().mean().item()


def nearest(condition: str) -> float:
    """Return the share that the three nearest images name, by vote; of equals the nearest wins."""
    (images, shown), (others, asked) = digits.split()
    images, others = (arranged(x, condition) for x in (images, others))
    if condition == "shifted copies":
        moves = [(i, j) for i in range(3) for j in range(3)]
        wide, side = F.pad(images, (1, 1, 1, 1)), images.shape[-1]
        images = torch.cat([wide[..., i : i + side, j : j + side] for i, j in moves])
        shown = shown.repeat(len(moves))
    distances = torch.cdist(others.flatten(1), images.flatten(1))
    votes = F.one_hot(shown[distances.topk(NEIGHBOURS, largest=False).indices], 10).float()
    # the nearer one counts a little more
    votes = votes * torch.tensor([1.02, 1.01, 1.0])[:, None]
    return (votes.sum(1).argmax(-1) == asked).float().mean().item()
