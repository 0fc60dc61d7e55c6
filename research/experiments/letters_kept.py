"""Lesson 01: what the one vector that an encoder hands on still holds of a word.

A probe reads the vector and names the letter at each place: a linear layer, or a network with one
hidden layer. It learns from some words and is tested on others, made of other pieces. What a probe
cannot read may be there all the same: so the middle piece is also searched for, among others, as
the one with which the encoder comes nearest to the vector with noise on it.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import spelling
from course_lib.instruments import results, training
from course_lib.pretrained import g2p
from course_lib.seq2seq import Seq2Seq
from research.experiments.long_words import PIECE, trained
from research.experiments.rnn_limits import untrained

LESSON = "01"
SEEDS = (0, 1, 2)
PIECES = (1, 2, 5)  # dictionary words of PIECE letters that are joined
LEARN, STOP, TEST = 16_000, 1_000, 2_000  # words to learn from, to stop by, to be tested on
HIDDEN, EPOCHS, BATCH = 512, 20, 128
ALPHABET = 26
SMALL = ("all", "all and joined")  # readers of 64 numbers (research/experiments/long_words.py)
UNTRAINED = "untrained, of g2p-en's size"
CANDIDATES, SEARCHED = 400, 50  # pieces, and words whose middle piece is searched for among them
NOISE = (0.1, 0.5, 1.0)  # standard deviations of each number of the vector
once = partial(results.once, "letters_kept", [LEARN, STOP, TEST, HIDDEN, EPOCHS, SEARCHED])


def words(pieces: int, seed: int) -> list[list[str]]:
    """Return words to learn from, to stop by and to be tested on, which share no piece."""
    draw = random.Random(seed)
    known = sorted({x for x, _ in spelling.pairs() if len(x) == PIECE and x.isalpha()})
    draw.shuffle(known)
    tenth = len(known) // 10
    parts = (known[2 * tenth :], known[:tenth], known[tenth : 2 * tenth])
    return [
        ["".join(draw.choices(part, k=pieces)) for _ in range(count)]
        for part, count in zip(parts, (LEARN, STOP, TEST), strict=True)
    ]


@torch.no_grad()
def contexts(model: Seq2Seq, some: list[str]) -> Tensor:
    """Return the vector that the decoder starts from, a row for each word."""
    batches = [some[i : i + 500] for i in range(0, len(some), 500)]
    return torch.cat([model.encoder(spelling.encode_words(x))[1].flatten(1) for x in batches])


def letters(some: list[str]) -> Tensor:
    """Return the number of each letter, a row for each word."""
    return torch.tensor([[ord(letter) - ord("a") for letter in word] for word in some])


def named(
    make: Callable[[int, int], nn.Module], inputs: list[Tensor], targets: list[Tensor]
) -> Tensor:
    """Train one probe; return by place the share of tested words whose letter it names.

    Each place is tested after the epoch that is best for it on the words to stop by.
    """
    probe = make(inputs[0].shape[-1], targets[0].shape[-1])
    optimizer = torch.optim.AdamW(probe.parameters(), lr=2e-3, weight_decay=0.01)

    def right(i: int) -> Tensor:
        with torch.no_grad():
            logits = probe.eval()(inputs[i]).unflatten(-1, (-1, ALPHABET))
        return (logits.argmax(-1) == targets[i]).float().mean(0)

    best = tested = torch.zeros(targets[0].shape[-1])
    for _ in range(EPOCHS):
        probe.train()
        for rows in torch.randperm(LEARN).split(BATCH):
            logits = probe(inputs[0][rows]).unflatten(-1, (-1, ALPHABET))
            loss = F.cross_entropy(logits.flatten(0, 1), targets[0][rows].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        now = right(1)
        tested, best = torch.where(now > best, right(2), tested), torch.maximum(now, best)
    return tested


def _linear(size: int, places: int) -> nn.Module:
    return nn.Linear(size, places * ALPHABET)


def _hidden(size: int, places: int) -> nn.Module:
    first, last = nn.Linear(size, HIDDEN), nn.Linear(HIDDEN, places * ALPHABET)
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(0.3), last)


def kept(model: Seq2Seq, seed: int) -> dict[str, dict[str, list[float]]]:
    """Return by length what either probe names, and what naming the commonest letter gets."""
    by_length = {}
    for pieces in PIECES:
        parts = words(pieces, seed)
        inputs, targets = [contexts(model, part) for part in parts], [*map(letters, parts)]
        mean, deviation = inputs[0].mean(0), inputs[0].std(0) + 1e-6
        inputs = [(x - mean) / deviation for x in inputs]
        with training.seeded(seed):
            shares = {
                "linear": named(_linear, inputs, targets),
                "hidden": named(_hidden, inputs, targets),
                "commonest": (targets[2] == targets[0].mode(0).values).float().mean(0),
            }
        by_length[str(PIECE * pieces)] = {
            name: [round(x, 3) for x in share.tolist()] for name, share in shares.items()
        }
    return by_length


def found(model: Seq2Seq, seed: int) -> dict[str, float]:
    """Return by noise how often the middle of five pieces is found, the others being known."""
    draw, (pieces, _, some) = random.Random(seed), words(max(PIECES), seed)
    deviation = contexts(model, pieces[:2000]).std(0) + 1e-6
    known = sorted({word[:PIECE] for word in some})
    hits = dict.fromkeys(map(str, NOISE), 0)
    start = max(PIECES) // 2 * PIECE
    with training.seeded(seed):
        for word in some[:SEARCHED]:
            right = word[start : start + PIECE]
            # the right one comes last: where all are alike, the first is the nearest
            tried = [*draw.sample([x for x in known if x != right], CANDIDATES - 1), right]
            scaled = contexts(model, [word[:start] + x + word[start + PIECE :] for x in tried])
            scaled = scaled / deviation
            for noise in NOISE:
                heard = scaled[-1] + noise * torch.randn_like(scaled[-1])
                nearest = (scaled - heard).norm(dim=-1).argmin()
                hits[str(noise)] += int(nearest) == CANDIDATES - 1
    return {noise: count / SEARCHED for noise, count in hits.items()}


def looked_into(name: str, seed: int) -> dict[str, Any]:
    """Load or train a reader, probe it, and search."""
    if name == UNTRAINED:
        return {"found": found(untrained(seed), seed)}
    model = trained(name, seed)[0] if name in SMALL else g2p.load()
    return {"named": kept(model.eval(), seed), "found": found(model.eval(), seed)}


def measure() -> dict[str, Any]:
    """Look into g2p-en, small readers trained without and with joined words, and no training."""
    figures: dict[str, list] = {name: [] for name in ("g2p-en", *SMALL, UNTRAINED)}
    for seed in SEEDS:
        for name in figures:
            run = once(f"{name}, seed {seed}", partial(looked_into, name, seed))
            figures[name].append(run)
            print(*table({name: [run]}), sep="\n", flush=True)
    return figures


def table(figures: dict[str, Any]) -> list[str]:
    """Return lines with what the better probe names, by place, and what is found, by noise."""
    lines = []
    for name, runs in figures.items():
        lines.append(f"{name:28} found: " + "; ".join(str(run["found"]) for run in runs))
        for length in runs[0].get("named", ()):
            named = [run["named"][length] for run in runs]
            better = [[*map(max, x["linear"], x["hidden"])] for x in named]
            means = [sum(three) / len(runs) for three in zip(*better, strict=True)]
            lines.append(f"{name:16}{length:>3} " + " ".join(f"{x:.2f}" for x in means))
    return lines
