"""Lesson 07: stacks of 2, 8 and 32 blocks, with and without residual connections, with and without
norms, from three kinds of initial weights.

Both kinds with norms have one after the last block too. The learning rate is swept for each kind
and depth: three rates, and more where the best of them is at the edge.
"""

import math

import torch

from course_lib.add_norm import PreNorm
from course_lib.data import characters
from course_lib.instruments.deep_stack import STARTS, NormAlone, Residual, Stack, bare, redraw
from research.experiments import stacks

LESSON = "07"
SEEDS = (0, 1, 2)

DEPTHS = [2, 8, 32]
WRAPS = {"bare": bare, "norm": NormAlone, "residual": Residual, "residual and norm": PreNorm}
RATES = [0.001, 0.003, 0.01]
STEPS = 120
PATIENT_STEPS = 1000  # for the deepest stacks without residual connections, from one seed


def measure() -> dict:
    """Return by kind and initial weights how the stream and gradient start, and what is learned."""
    kinds = [(name, start) for name in WRAPS for start in STARTS]
    figures: dict = {
        "depths": DEPTHS,
        "rates": RATES,
        "steps": STEPS,
        "settings": stacks.SETTINGS,
        "trivial": stacks.trivial_loss(),
        "trivial in training": stacks.trivial_loss(in_training=True),
        "starts": {name: {} for name in WRAPS},
        "loss": {name: {} for name in WRAPS},
        "without clipping": {name: {} for name in WRAPS},
        "patient steps": PATIENT_STEPS,
        "patient": {"bare": {}, "norm": {}},
    }
    for name, start in kinds:
        figures["starts"][name][start] = [at_start(new(name, start, 32, seed)) for seed in SEEDS]
    for name, start in kinds:
        by_depth = figures["loss"][name][start] = {}
        for depth in DEPTHS:
            by_depth[str(depth)] = swept(name, start, depth, figures["trivial"])
            print(name, start, depth, by_depth[str(depth)], flush=True)
    for name, start in kinds:
        rate = figures["loss"][name][start]["32"]["best"]
        unclipped = trained_loss(name, start, 32, SEEDS[0], rate, clip=math.inf)
        figures["without clipping"][name][start] = unclipped
        print("unclipped", name, start, unclipped, flush=True)
        if name in figures["patient"]:
            long = [
                trained_loss(name, start, 32, SEEDS[0], rate, steps=PATIENT_STEPS)
                for rate in RATES[:2]
            ]
            figures["patient"][name][start] = min(long)
            print("patient", name, start, long, flush=True)
    return figures


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"frequency baseline {figures['trivial']:.3f}; held-out loss after 120 steps"]
    for name, by_start in figures["loss"].items():
        for start, by_depth in by_start.items():
            shown = [f"{name:17} {start:16}"]
            for depth, found in by_depth.items():
                losses = ", ".join(f"{loss:.2f}" for loss in found["losses"])
                shown.append(f"{depth:>2} blocks: {losses} (rate {found['best']:g})")
            shown.append(f"unclipped {figures['without clipping'][name][start]:.2f}")
            if name in figures["patient"]:
                shown.append(f"1,000 steps {figures['patient'][name][start]:.2f}")
            lines.append("  ".join(shown))
    return lines


def new(name: str, start: str, blocks: int, seed: int) -> Stack:
    """Make a stack that has learned nothing yet, with initial weights of one kind."""
    model = stacks.new(WRAPS[name], blocks, seed, last_norm=name in ("norm", "residual and norm"))
    redraw(model, start, seed)
    return model


def at_start(model: Stack) -> dict[str, list[float]]:
    """Return the stream's root mean square and the gradient's norm at each level, lowest first."""
    model, (learning, _) = model.double(), characters.split()
    tokens, following = next(characters.batches(learning, stacks.SETTINGS["n"], 32, 0))
    streams = model.streams(tokens)
    value = stacks.loss(lambda _: model.read(streams[-1]), (tokens, following))
    gradients = torch.autograd.grad(value, streams)
    return {
        "stream": [float(f"{x.square().mean().sqrt().item():.4g}") for x in streams],
        "gradient": [float(f"{gradient.norm().item():.4g}") for gradient in gradients],
    }


def swept(name: str, start: str, depth: int, trivial: float) -> dict:
    """Return the best rate of those tried, its losses by seed, and the mean loss of each rate.

    A rate at the edge is followed by a further one, unless nothing is learned anyway.
    """
    tried: dict[float, list[float]] = {}
    wanted = [*RATES]
    while wanted:
        for rate in wanted:
            tried[rate] = [trained_loss(name, start, depth, seed, rate) for seed in SEEDS]
        means = {rate: sum(losses) / len(losses) for rate, losses in sorted(tried.items())}
        best = min(means, key=lambda rate: means[rate])
        learns = means[best] < trivial - 0.1
        further = {min(means): best / 3, max(means): best * 3}
        wanted = [float(f"{further[best]:.1g}")] if learns and best in further else []
    return {
        "best": best,
        "losses": [round(loss, 4) for loss in tried[best]],
        "means": {f"{rate:g}": round(mean, 4) for rate, mean in means.items()},
    }


def trained_loss(
    name: str, start: str, blocks: int, seed: int, rate: float, **options: float
) -> float:
    """Train a stack, and return its loss on held-out text; a loss that overflows counts 1e9."""
    model = new(name, start, blocks, seed)
    try:
        stacks.train(model, seed, learning_rate=rate, **{"steps": STEPS, **options})
    except FloatingPointError:
        return 1e9
    loss = stacks.held_out_loss(model)
    return min(loss, 1e9) if math.isfinite(loss) else 1e9
