"""Exploration 07_induction_heads: heads that find what followed the same token, and their use.

Models of attention alone on texts of random letters that begin again; then all heads of a trained
decoder, SmolLM2, on random tokens that are repeated.
"""

from itertools import count
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.instruments import training
from course_lib.instruments.attention_only import (
    AttentionOnly,
    induction_score,
    loss_on_return,
    next_letter_loss,
    previous_token_score,
    repeated,
)
from course_lib.instruments.watched_heads import WatchedHeads
from course_lib.pretrained import smollm2

LESSON = "07_induction_heads"
SEEDS = (0, 1, 2)
STEPS, BATCH, EVERY = 1500, 64, 25
HEADS = 2  # in each of two layers; one layer has as many in all
RATES = (0.001, 0.003, 0.01)
TEST_SEED = 1000
TEXTS, LENGTH = 8, 40  # of random tokens, read twice
REMOVED = (1, 2, 5, 10, 20)
DRAWS = 5


def test_texts() -> tuple[Tensor, Tensor]:
    """Return the texts on which all models are judged."""
    return next(repeated(256, TEST_SEED))


def train(layers: int, rate: float, seed: int, shuffled: bool = False) -> dict[str, Any]:
    """Train one model; return its curve, its heads' scores, and its loss without each head."""
    with training.seeded(seed):
        model = AttentionOnly(layers, 2 * HEADS // layers)
    test, curve, steps = test_texts(), [], count()
    before = scores(model, test[0])

    def loss(model: AttentionOnly, batch: tuple[Tensor, Tensor]) -> Tensor:
        if next(steps) % EVERY == 0:
            curve.append(loss_on_return(model, test))
        return next_letter_loss(model, batch)

    texts = repeated(BATCH, seed, shuffled)
    training.train(model, texts, loss, steps=STEPS, learning_rate=rate)
    heads = [(layer, head) for layer in range(layers) for head in range(model.heads)]
    return {
        "parameters": sum(x.numel() for x in model.parameters()),
        "curve": [*curve, loss_on_return(model, test)],
        "untrained": before,
        "scores": scores(model, test[0]),
        "without": [[*head, loss_on_return(model, test, [head])] for head in heads],
    }


@torch.no_grad()
def scores(model: AttentionOnly, tokens: Tensor) -> dict[str, list]:
    """Return both scores of each head, for each layer."""
    weights = model.weights(tokens)
    return {
        "previous": [previous_token_score(x).tolist() for x in weights],
        "induction": [induction_score(x, tokens).tolist() for x in weights],
    }


def of_smollm2() -> dict[str, Any]:
    """Return the scores of its 270 heads, and the loss on the second half without some of them."""
    watched = WatchedHeads()
    model = smollm2.load(rule=watched)
    generator = torch.Generator().manual_seed(0)
    half = torch.randint(1000, smollm2.VOCAB, (TEXTS, LENGTH), generator=generator)
    tokens = torch.cat([half, half], dim=-1)

    @torch.no_grad()
    def losses(removed: list[tuple[int, int]]) -> dict[str, float]:
        watched.begin(removed)
        each = F.cross_entropy(model(tokens)[:, :-1].mT, tokens[:, 1:], reduction="none")
        return {
            "first": each[:, : LENGTH - 1].mean().item(),
            "second": each[:, LENGTH:].mean().item(),
        }

    whole = losses([])
    previous = torch.stack([previous_token_score(x) for x in watched.weights])
    induction = torch.stack([induction_score(x, tokens) for x in watched.weights])
    best = [divmod(int(i), smollm2.HEADS) for i in induction.flatten().argsort(descending=True)]
    others, runs = best[max(REMOVED) :], []
    for count in REMOVED:
        drawn = [torch.randperm(len(others), generator=generator)[:count] for _ in range(DRAWS)]
        random = [losses([others[i] for i in chosen]) for chosen in drawn]
        runs.append({"heads": count, "best": losses(best[:count]), "random": random})
    return {
        "whole": whole,
        "previous": previous.tolist(),
        "induction": induction.tolist(),
        "removed": runs,
    }


def measure() -> dict[str, Any]:
    """Return the runs of small models, and what was found in a large one."""
    runs: dict[str, Any] = {}
    for name, layers, shuffled, rates in (
        ("two layers", 2, False, RATES),
        ("one layer", 1, False, RATES),
        ("two layers, shuffled", 2, True, RATES[1:2]),
    ):
        runs[name] = {str(rate): [train(layers, rate, s, shuffled) for s in SEEDS] for rate in rates}
    _, periods = test_texts()
    return {
        "steps": STEPS,
        "every": EVERY,
        "any letter of the text": periods.float().log().mean().item(),
        "runs": runs,
        "SmolLM2": of_smollm2(),
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"any letter of the text: {figures['any letter of the text']:.2f} nats"]
    for name, rates in figures["runs"].items():
        for rate, runs in rates.items():
            last = ", ".join(f"{run['curve'][-1]:.3f}" for run in runs)
            lines.append(f"{name}, rate {rate}: loss on return {last}")
            for run in runs:
                for score, layers in run["scores"].items():
                    shown = [[round(x, 2) for x in layer] for layer in layers]
                    lines.append(f"  {score} {shown}")
                lines.append(f"  without {[[*x[:2], round(x[2], 2)] for x in run['without']]}")
    large = figures["SmolLM2"]
    best = torch.tensor(large["induction"]).flatten().sort(descending=True).values
    lines.append(f"SmolLM2 {large['whole']}; best {[round(x, 2) for x in best[:20].tolist()]}")
    for run in large["removed"]:
        random = [round(x["second"], 2) for x in run["random"]]
        lines.append(f"  without {run['heads']}: {run['best']}; random {random}")
    return lines
