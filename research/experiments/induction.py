"""Exploration 07_induction_heads: heads that find what followed the same token, and their use.

Models of attention alone on texts of random letters that begin again.
"""

from itertools import count
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.instruments import results, training
from course_lib.instruments.attention_only import (
    LETTERS,
    AttentionOnly,
    induction_score,
    loss_on_return,
    next_letter_loss,
    previous_token_score,
    repeated,
)

LESSON = "07_induction_heads"
SEEDS = (0, 1, 2)
STEPS, BATCH, EVERY = 1200, 64, 50
HEADS = 4  # in all: two in each of two layers, or four in one
RATES = {2: (0.001, 0.003, 0.01), 1: (0.003, 0.01, 0.03)}  # for each number of layers
TEST_SEED = 1000
BACK = 8  # the distances at which layer 1 is watched: 0 is the token itself
KEYS = (4, 5, 6, 7)  # places of a first copy at which one token is changed
JUMPED = 3  # letters that are judged after a jump
SETTINGS = [STEPS, BATCH, EVERY, HEADS, BACK, KEYS]


def judged_texts(shuffled: bool = False) -> tuple[Tensor, Tensor]:
    """Return the texts on which all models are judged."""
    return next(repeated(256, TEST_SEED, shuffled))


def train(layers: int, rate: float, seed: int) -> dict[str, Any]:
    """Train one model; return its curve, its heads' scores, and what it does without some parts."""
    with training.seeded(seed):
        model = AttentionOnly(layers, HEADS // layers)
    test, curve, steps = judged_texts(), [], count()
    before = scores(model, test[0])

    def loss(model: AttentionOnly, batch: tuple[Tensor, Tensor]) -> Tensor:
        if next(steps) % EVERY == 0:
            curve.append(loss_on_return(model, test))
        return next_letter_loss(model, batch)

    texts = repeated(BATCH, seed)
    training.train(model, texts, loss, steps=STEPS, learning_rate=rate)
    heads = [(layer, head) for layer in range(layers) for head in range(model.heads)]
    first = [head for head in heads if head[0] == 0]
    return {
        "parameters": sum(x.numel() for x in model.parameters()),
        "curve": [*curve, loss_on_return(model, test)],
        "on shuffled texts": loss_on_return(model, judged_texts(shuffled=True)),
        "untrained": before,
        "scores": scores(model, test[0]),
        "without": [[*head, loss_on_return(model, test, [head])] for head in heads],
        "without layer 1": loss_on_return(model, test, first),
        "noticed": noticed(model, *test) if layers == 2 else {},
    }


@torch.no_grad()
def after_a_jump(layers: int, rate: float, seed: int) -> dict[str, float]:
    """Train one model; return its loss where the second copy does not begin with the first letter.

    In the texts of training, the next letter is also the one that has been away the longest. After
    a jump it is not.
    """
    with training.seeded(seed), torch.enable_grad():
        model = AttentionOnly(layers, HEADS // layers)
        settings = {"steps": STEPS, "learning_rate": rate}
        training.train(model, repeated(BATCH, seed), next_letter_loss, **settings)
    tokens, periods = jumped(*judged_texts())
    rows, found = torch.arange(len(tokens)), {"loss": 0.0, "right": 0.0, "longest away": 0.0}
    for step in range(JUMPED):
        logits, answer = model(tokens)[rows, periods + step], tokens[rows, periods + step + 1]
        guess = logits.argmax(-1)
        found["loss"] += F.cross_entropy(logits, answer).item() / JUMPED
        found["right"] += (guess == answer).float().mean().item() / JUMPED
        # the first letters of the text have been away the longest
        found["longest away"] += (guess == tokens[:, 0]).float().mean().item() / JUMPED
    return found


def jumped(tokens: Tensor, periods: Tensor) -> tuple[Tensor, Tensor]:
    """Return texts whose second copy begins in the middle of the first one."""
    generator = torch.Generator().manual_seed(TEST_SEED)
    share = torch.rand(len(periods), generator=generator)
    starts = 2 + (share * (periods - JUMPED - 3)).long()
    places = torch.arange(tokens.shape[1]).expand_as(tokens)
    again = (places - periods.unsqueeze(-1) + starts.unsqueeze(-1)) % periods.unsqueeze(-1)
    places = torch.where(places < periods.unsqueeze(-1), places, again)
    return tokens.gather(1, places), periods


@torch.no_grad()
def scores(model: AttentionOnly, tokens: Tensor) -> dict[str, list]:
    """Return both scores of each head, for each layer, and where layer 1 looks."""
    weights = model.weights(tokens)
    back = [weights[0].diagonal(-d, -2, -1).mean((0, 2)).tolist() for d in range(BACK)]
    return {
        "previous": [previous_token_score(x).tolist() for x in weights],
        "induction": [induction_score(x, tokens).tolist() for x in weights],
        "layer 1, by distance": back,
    }


@torch.no_grad()
def noticed(model: AttentionOnly, tokens: Tensor, periods: Tensor) -> dict[str, float]:
    """Return the weight of layer 2's best head on the answer, where one token was changed.

    The change is seen by that one key alone, or by the query alone.
    """
    head = int(induction_score(model.weights(tokens)[1], tokens).argmax())
    free = torch.stack([torch.bincount(text, minlength=LETTERS) for text in tokens]).argmin(-1)
    bare, streams = model.streams(tokens)[:2]
    found: dict[str, list[float]] = {}

    def note(name: str, key: int, keys: Tensor, queries: Tensor) -> None:
        weight = weight_on(key, model.layers[1], head, keys, queries, periods + key - 1)
        found.setdefault(name, []).append(weight)

    for key in KEYS:
        note("nothing", key, streams, streams)
        note("layer 1, for keys", key, bare, streams)
        note("layer 1, for queries", key, streams, bare)
        for back in range(4):
            other = tokens.clone()
            other[:, key - back] = free
            changed = model.streams(other)[1]
            one_key = streams.clone()
            one_key[:, key] = changed[:, key]
            note(f"{back} back, for the key", key, one_key, streams)
            note(f"{back} back, for the query", key, streams, changed)
    return {name: sum(weights) / len(weights) for name, weights in found.items()}


def weight_on(key: int, layer: Any, head: int, keys: Tensor, queries: Tensor, at: Tensor) -> float:
    """Return the mean weight of a head on one key, from the queries at `at`."""
    q = queries[torch.arange(len(at)), at] @ layer.w_q[head]
    k = keys @ layer.w_k[head]
    visible = torch.arange(keys.shape[1]) <= at.unsqueeze(-1)
    weights = (k @ q.unsqueeze(-1)).squeeze(-1) / k.shape[-1] ** 0.5
    return weights.masked_fill(~visible, float("-inf")).softmax(-1)[:, key].mean().item()


def measure() -> dict[str, Any]:
    """Return the runs of small models, and what was found in a large one."""
    runs: dict[str, Any] = {}
    for name, layers in (("two layers", 2), ("one layer", 1)):
        for rate in RATES[layers]:
            for seed in SEEDS:
                run = results.once(
                    "induction",
                    SETTINGS,
                    f"{name}, {rate}, {seed}",
                    lambda settings=(layers, rate, seed): train(*settings),
                )
                runs.setdefault(name, {}).setdefault(str(rate), []).append(run)
    jumps = {
        name: results.once(
            "induction",
            SETTINGS,
            name,
            lambda layers=layers, rate=rate: [after_a_jump(layers, rate, seed) for seed in SEEDS],
        )
        for name, layers, rate in (("two layers", 2, 0.01), ("one layer", 1, 0.03))
    }
    return {
        "steps": STEPS,
        "every": EVERY,
        "after a jump": jumps,
        "runs": runs,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"after a jump: {figures['after a jump']}"]
    for name, rates in figures["runs"].items():
        for rate, runs in rates.items():
            last = ", ".join(f"{run['curve'][-1]:.3f}" for run in runs)
            lines.append(f"{name}, rate {rate}: loss on return {last}")
            for run in runs:
                for score, layers in run["scores"].items():
                    lines.append(f"  {score} {[[round(x, 2) for x in layer] for layer in layers]}")
                without = [[*x[:2], round(x[2], 2)] for x in run["without"]]
                lines.append(f"  without {without}, layer 1 {run['without layer 1']:.2f}")
                lines.append(f"  { ({k: round(x, 2) for k, x in run['noticed'].items()}) }")
    return lines
