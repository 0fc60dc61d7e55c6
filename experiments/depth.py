"""Lesson 07: gradients and losses of stacks from 2 to 32 blocks, by how their layers are held."""

import torch

from course_lib.add_norm import PreNorm
from course_lib.data import characters
from course_lib.instruments.deep_stack import NormAlone, Residual, Stack, bare
from experiments import stacks

LESSON = "07"
SEEDS = (0, 1, 2)

DEPTHS = [2, 4, 8, 16, 32]
WRAPS = {"bare": bare, "norm": NormAlone, "residual": Residual, "residual and norm": PreNorm}
BUDGET = {"steps": 120, "learning_rate": 0.003}
OTHER_RATES = [0.0003, 0.001, 0.01]  # for the deepest bare stack, which might want another
LOWER_RATES = [0.0003, 0.001]  # for the deepest stack of residuals alone, whose loss is huge
# what patience buys, from one seed: minutes a stack
PATIENT = {"bare": [4, 8, 32], "residual and norm": [32]}
PATIENT_STEPS = 2000
WINDOW = 20  # steps, over which the losses of a long run are averaged


def measure() -> dict:
    """Return each kind's gradients at the start, and its loss after training, by depth."""
    deepest = DEPTHS[-1]
    return {
        "depths": DEPTHS,
        "settings": {**stacks.SETTINGS, **BUDGET},
        "trivial": stacks.trivial_loss(),
        "trivial in training": stacks.trivial_loss(in_training=True),
        "gradient": {
            name: [gradients(stacks.new(wrap, deepest, seed), seed) for seed in SEEDS]
            for name, wrap in WRAPS.items()
        },
        "loss": {
            name: [[trained_loss(wrap, depth, seed) for depth in DEPTHS] for seed in SEEDS]
            for name, wrap in WRAPS.items()
        },
        # is it the last norm that a stack of norms alone lacks?
        "norm with a last norm": [
            trained_loss(NormAlone, deepest, seed, last_norm=True) for seed in SEEDS
        ],
        "other rates": OTHER_RATES,
        "bare at other rates": [
            [trained_loss(bare, deepest, seed, learning_rate=rate) for rate in OTHER_RATES]
            for seed in SEEDS
        ],
        "residual untrained": [
            [stacks.held_out_loss(stacks.new(Residual, depth, seed)) for depth in DEPTHS]
            for seed in SEEDS
        ],
        "lower rates": LOWER_RATES,
        "residual at lower rates": [
            [trained_loss(Residual, deepest, seed, learning_rate=rate) for rate in LOWER_RATES]
            for seed in SEEDS
        ],
        "patient steps": PATIENT_STEPS,
        "window": WINDOW,
        "patient": {
            name: {str(depth): patient(WRAPS[name], depth) for depth in depths}
            for name, depths in PATIENT.items()
        },
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"trivial loss {figures['trivial']:.3f}; held-out loss by number of blocks"]
    lines.append(" " * 27 + "".join(f"{depth:>10}" for depth in figures["depths"]))
    for name, seeds in figures["loss"].items():
        for seed, losses in enumerate(seeds):
            shown = "".join(f"{value:10.3f}" for value in losses)
            first, last = (figures["gradient"][name][seed][level] for level in (0, -1))
            lines.append(f"{name:19} seed {seed:2} {shown}   gradient {last:.0e} -> {first:.0e}")
    controls = ", ".join(f"{value:.3f}" for value in figures["norm with a last norm"])
    lines.append(f"norm with a last norm, {figures['depths'][-1]} blocks: {controls}")
    for name, rates in (("bare", "other"), ("residual", "lower")):
        for seed, losses in enumerate(figures[f"{name} at {rates} rates"]):
            pairs = zip(figures[f"{rates} rates"], losses, strict=True)
            shown = ", ".join(f"{rate}: {value:.3f}" for rate, value in pairs)
            lines.append(f"{name}, seed {seed}: {shown}")
    for name, runs in figures["patient"].items():
        for depth, run in runs.items():
            steps = figures["patient steps"]
            lines.append(f"{name}, {depth} blocks, {steps} steps: {run['held out']:.3f}")
    return lines


def gradients(model: Stack, seed: int) -> list[float]:
    """Return the norm of the loss's gradient at each level of a stack, the lowest first."""
    model, (learning, _) = model.double(), characters.split()
    tokens, following = next(characters.batches(learning, stacks.SETTINGS["n"], 32, seed))
    streams = model.streams(tokens)
    value = stacks.loss(lambda _: model.read(streams[-1]), (tokens, following))
    return [gradient.norm().item() for gradient in torch.autograd.grad(value, streams)]


def trained_loss(
    wrap, blocks: int, seed: int, last_norm: bool | None = None, **budget: float
) -> float:
    """Train a stack, and return its loss on held-out text."""
    model = stacks.new(wrap, blocks, seed, last_norm)
    stacks.train(model, seed, **{**BUDGET, **budget})
    return stacks.held_out_loss(model)


def patient(wrap, blocks: int) -> dict:
    """Train a stack from the first seed for long; return its losses, averaged, and the last."""
    model = stacks.new(wrap, blocks, SEEDS[0])
    losses = torch.tensor(stacks.train(model, SEEDS[0], **{**BUDGET, "steps": PATIENT_STEPS}))
    means = losses.view(-1, WINDOW).mean(-1).tolist()
    return {"losses": [round(mean, 3) for mean in means], "held out": stacks.held_out_loss(model)}
