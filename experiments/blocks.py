"""Lesson 05: minimal blocks on Shakespeare's characters, from one to six, with equal steps.

How alike have the tokens become? The spread is measured before the first block and behind each.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import characters
from course_lib.feed_forward import MinimalBlock
from course_lib.instruments import training
from experiments import stacks
from experiments.two_cures import spread

LESSON = "05"
SEEDS = (0, 1, 2)
DEPTHS = (1, 2, 6)
SETTINGS = {"d_model": 48, "n": 32, "batch": 16}
BUDGET = {"steps": 800, "learning_rate": 0.006}
EVERY = 100  # steps from one measurement to the next


def new(depth: int, seed: int) -> nn.Sequential:
    """Make a stack of minimal blocks that has learned nothing yet."""
    vocab, d_model = len(characters.vocab()), SETTINGS["d_model"]
    with training.seeded(seed):
        blocks = [MinimalBlock(d_model, 4 * d_model) for _ in range(depth)]
        return nn.Sequential(nn.Embedding(vocab, d_model), *blocks, nn.Linear(d_model, vocab))


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next characters, in nats."""
    tokens, following = batch
    return F.cross_entropy(model(tokens).mT, following)


@torch.no_grad()
def spreads(model: nn.Sequential, tokens: Tensor) -> list[float]:
    """Return the spread of the embeddings, and of what each block makes of them."""
    embedding, *blocks, _ = model
    x = embedding(tokens)
    spreads = [spread(x)]
    for block in blocks:
        x = block(x)
        spreads.append(spread(x))
    return [float(f"{value:.3g}") for value in spreads]


def measure_one(depth: int, seed: int) -> dict:
    """Train one stack; return its held-out loss by steps, and how much it varies what it says."""
    model, (learning, held_out) = new(depth, seed), characters.split()
    test = next(characters.batches(held_out, SETTINGS["n"], 128, seed=1))
    steps, losses = 0, []

    def held_out_loss() -> float:
        with torch.no_grad():
            return round(loss(model, test).item(), 4)

    def watched(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        nonlocal steps
        if steps % EVERY == 0:
            losses.append(held_out_loss())
        steps += 1
        return loss(model, batch)

    batches = characters.batches(learning, SETTINGS["n"], SETTINGS["batch"], seed)
    training.train(model, batches, watched, seed=seed, **BUDGET)
    losses.append(held_out_loss())
    with torch.no_grad():
        e = model(test[0]).softmax(-1)[..., characters.vocab().index("e")].flatten()
    inner = torch.quantile(e, torch.tensor([0.05, 0.95])).tolist()
    e_range = [round(chance, 4) for chance in inner]
    return {"loss": losses, "e": e_range, "spread": spreads(model, test[0])}


def measure() -> dict:
    """Return losses by depth, seed and steps, and that of the frequencies."""
    return {
        "depths": DEPTHS,
        "every": EVERY,
        "settings": {**SETTINGS, **BUDGET},
        "trivial": stacks.trivial_loss(),
        "runs": [[measure_one(depth, seed) for seed in SEEDS] for depth in DEPTHS],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    rows = [f"frequencies alone: {figures['trivial']:.3f}; held-out loss after all steps"]
    for depth, runs in zip(figures["depths"], figures["runs"], strict=True):
        ends = ", ".join(
            f"{run['loss'][-1]:.3f} (e: {run['e'][0]:.3f} to {run['e'][1]:.3f})" for run in runs
        )
        rows.append(f"  {depth} blocks: {ends}")
    return rows
