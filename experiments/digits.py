"""Lesson 15: who reads 1,797 small digits best at equal steps, and whom do shifts help?"""

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

STEPS = 850  # of each training
BATCH = 64
RATES = (0.001, 0.002, 0.004)
NEIGHBOURS = 3
VIT: dict[str, Any] = {"patch": 2, "layers": 2, "d_model": 48, "heads": 4, "d_ff": 96}
SETTINGS = {"steps": STEPS, "batch": BATCH, "rates": RATES} | VIT
# how the images come: as they are, or shifted by up to a pixel
CONDITIONS = ("as they are", "shifted copies")


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
    """Return shares right on held-out images, by condition, model and seed, at the best rate."""
    runs: dict[str, Any] = {}
    for condition in CONDITIONS:
        runs[condition] = {}
        for name in MODELS:
            swept = {
                rate: once(f"{condition} {name} {rate} 0", partial(run, condition, name, rate, 0))
                for rate in RATES
            }
            best = max(swept, key=lambda rate: swept[rate])
            others = [
                once(f"{condition} {name} {best} {x}", partial(run, condition, name, best, x))
                for x in SEEDS[1:]
            ]
            runs[condition][name] = {"rate": best, "right": [swept[best], *others]}
            runs[condition][name]["swept"] = {str(rate): share for rate, share in swept.items()}
    nearest_right = {condition: nearest(condition) for condition in CONDITIONS}
    return {"settings": SETTINGS, "nearest": nearest_right, "runs": runs}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for condition, models in figures["runs"].items():
        lines.append(f"{condition:16} nearest      {figures['nearest'][condition]:.1%}")
        for name, arm in models.items():
            shares = " ".join(f"{share:.1%}" for share in arm["right"])
            lines.append(f"{condition:16} {name:12} {shares}   at {arm['rate']} ({arm['swept']})")
    return lines


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


def run(condition: str, name: str, rate: float, seed: int) -> float:
    """Train a model; return the share of held-out images that it names."""
    (images, shown), (others, asked) = digits.split()
    with training.seeded(seed):
        model = MODELS[name]()
    stream = batches(images, shown, seed, shift=condition == "shifted copies")
    training.train(model, stream, loss, steps=STEPS, learning_rate=rate, seed=seed)
    with torch.no_grad():
        return (model(others).argmax(-1) == asked).float().mean().item()


def nearest(condition: str) -> float:
    """Return the share that the three nearest images name, by vote; of equals the nearest wins."""
    (images, shown), (others, asked) = digits.split()
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
