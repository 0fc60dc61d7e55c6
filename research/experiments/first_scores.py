"""Lesson 06: how fast attention learns, by the variance that its scores have at the start."""

from functools import partial

import torch
from torch import Tensor, nn

from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import characters
from course_lib.instruments import training
from course_lib.multi_head import MultiHeadAttention, split_heads
from research.experiments.multi_head import (
    READER,
    TESTED,
    Reader,
    next_character_loss,
    pointers,
    squared_error,
)

LESSON = "06"
SEEDS = (0, 1, 2)

WANTED = 2  # numbers that each token must fetch, by as many heads
LEARNT = 0.9  # share of their variance that counts as learned
FACTORS = (1 / 16, 1 / 4, 1, 3, 4, 8, 16, 64, 256)  # on scores already divided by sqrt(d_k)
POINTERS = {"d_model": 32, "batch": 64, "steps": 400, "learning_rate": 0.003}
READER_STEPS = 200
READER_HEADS = (4, 1)


def measure() -> dict:
    """Return how many steps two heads need, by factor, and a reader's loss, by heads."""
    return {
        "settings": {"pointers": POINTERS, "reader": READER | {"steps": READER_STEPS}},
        "factors": list(FACTORS),
        "pointers": [[measure_pointers(factor, seed) for factor in FACTORS] for seed in SEEDS],
        "reader": [
            {
                "heads": heads,
                "divided": divided,
                "loss": [reader_loss(heads, divided, seed) for seed in SEEDS],
            }
            for heads in READER_HEADS
            for divided in (True, False)
        ],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = ["factor " + "".join(f"{factor:9.4g}" for factor in figures["factors"])]
    for runs in figures["pointers"]:
        lines.append("variance" + "".join(f"{run['variance']:9.4f}" for run in runs))
        lines.append("steps   " + "".join(f"{run['steps'] or '-':>9}" for run in runs))
    for run in figures["reader"]:
        name = f"{run['heads']} heads, {'divided' if run['divided'] else 'not divided'}: "
        lines.append(name + " ".join(f"{loss:.3f}" for loss in run["loss"]))
    return lines


def attend_with(factor: float, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attend with scores that are multiplied by a factor once more."""
    return weighted_sum(softmax(factor * dot_scores(q, k) / q.shape[-1] ** 0.5, mask), v)


class Fetcher(nn.Module):
    """Two heads over inputs of variance 1, as a layer norm makes them in a Transformer."""

    def __init__(self, factor: float):
        super().__init__()
        d_model = POINTERS["d_model"]
        self.embedding, self.number = nn.Linear(d_model, d_model), nn.Linear(1, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, WANTED, partial(attend_with, factor))
        self.readout = nn.Linear(d_model, WANTED)

    def forward(self, names: Tensor, tokens: Tensor) -> Tensor:
        """Return the numbers that each token has found."""
        x = self.norm(self.embedding(names))
        return self.readout(self.attention(x, x, x + self.number(tokens[..., -1:])))

    def score_variance(self, factor: float, names: Tensor) -> float:
        """Return the variance of the scores that the softmax gets."""
        x, layer = self.norm(self.embedding(names)), self.attention
        q, k = (split_heads(w(x), layer.heads) for w in (layer.w_q, layer.w_k))
        return (factor * dot_scores(q, k) / q.shape[-1] ** 0.5).var().item()


def measure_pointers(factor: float, seed: int) -> dict[str, float | None]:
    """Return the first variance of the scores, and the step from which on enough is explained."""
    generator = torch.Generator().manual_seed(seed)
    with training.seeded(seed):
        model = Fetcher(factor)
    variance = model.score_variance(factor, pointers(500, WANTED, generator)[0])
    history = training.train(
        model,
        iter(lambda: pointers(POINTERS["batch"], WANTED, generator), None),
        squared_error,
        steps=POINTERS["steps"],
        learning_rate=POINTERS["learning_rate"],
        seed=seed,
    )
    # the numbers have variance 1; the mean of ten steps is less noisy than one
    shares = 1 - torch.tensor(history.losses).unfold(0, 10, 1).mean(-1)
    enough = (shares >= LEARNT).nonzero()
    return {"variance": variance, "steps": enough[0].item() + 10 if len(enough) else None}


def reader_loss(heads: int, divided: bool, seed: int) -> float:
    """Return a reader's loss on held-out text after few steps, its scores divided or not."""
    learning, held_out = characters.split()
    d_k = READER["d_model"] // heads
    with training.seeded(seed):
        model = Reader(len(characters.vocab()), READER["d_model"], heads)
    model.attention.rule = partial(attend_with, 1 if divided else d_k**0.5)
    training.train(
        model,
        characters.batches(learning, READER["n"], READER["batch"], seed),
        next_character_loss,
        steps=READER_STEPS,
        learning_rate=READER["learning_rate"],
        seed=seed,
    )
    with torch.no_grad():
        batch = next(characters.batches(held_out, READER["n"], TESTED, seed=0))
        return next_character_loss(model, batch).item()
