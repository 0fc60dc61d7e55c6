"""Lesson 15: who recalls the newest value of a key, at equal steps, with how much memory?"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import PreNorm
from course_lib.beyond import matrix_memory_at_once
from course_lib.feed_forward import FeedForward
from course_lib.instruments import results, training
from course_lib.masks import causal_mask
from course_lib.positions import LearnedPositions
from course_lib.self_attention import scaled_dot_product_attention

LESSON = "15"
SEEDS = (0, 1, 2)

STEPS = 300  # of each training
KEYS, VALUES = 12, 16
WRITES, QUESTIONS = 24, 8  # a key is written about twice, and its newest value counts
N = WRITES + QUESTIONS
D_MODEL, D_FF, LAYERS = 64, 128, 2
BATCH = 32
RATES = (0.0025, 0.005, 0.01)
TESTED = 512  # texts
SIZES = (4, 8, 16)  # numbers of a key

SETTINGS = {
    "steps": STEPS,
    "keys": KEYS,
    "values": VALUES,
    "writes": WRITES,
    "questions": QUESTIONS,
    "d_model": D_MODEL,
    "layers": LAYERS,
    "batch": BATCH,
    "rates": RATES,
}
once = partial(results.once, "one_equation", SETTINGS)  # what an ended run has measured is kept


class Attention(nn.Module):
    """One head of causal attention: all keys and values are kept."""

    def __init__(self, d_k: int):
        super().__init__()
        self.q, self.k = (nn.Linear(D_MODEL, d_k) for _ in range(2))
        self.v, self.out = (nn.Linear(D_MODEL, D_MODEL) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """Let each token attend to those before it."""
        mask = causal_mask(x.shape[-2])
        return self.out(scaled_dot_product_attention(self.q(x), self.k(x), self.v(x), mask))


class Memory(Attention):
    """One head of a matrix memory: a row of the table says how it decays, erases and writes."""

    def __init__(self, d_k: int, row: str):
        super().__init__(d_k)
        self.row, self.share = row, nn.Linear(D_MODEL, 2)
        # a memory that decays begins by keeping 0.95 at each token
        nn.init.constant_(self.share.bias, 0.0)
        with torch.no_grad():
            self.share.bias[0] = 3.0

    def forward(self, x: Tensor) -> Tensor:
        """Let each token change the state, and read it."""
        q, k = (F.normalize(F.silu(part(x)), dim=-1) for part in (self.q, self.k))
        gates = self.share(x).sigmoid()
        kept, beta, one = gates[..., 0], gates[..., 1], torch.ones_like(gates[..., 0])
        decay, erase, write = {
            "decaying average": (kept, 0 * one, 1 - kept),
            "linear attention": (one, 0 * one, one),
            "RetNet": (31 / 32 * one, 0 * one, one),
            "Mamba-2": (kept, 0 * one, -kept.log()),
            "delta rule": (one, beta, beta),
            "gated delta rule": (kept, beta, beta),
        }[self.row]
        return self.out(matrix_memory_at_once(q, k, self.v(x), decay, erase, write))


class Reader(nn.Module):
    """Blocks of a mixer and a feed-forward network, which name a value at each place."""

    def __init__(self, row: str, d_k: int, layers: int = LAYERS):
        super().__init__()
        self.keys = nn.Embedding(KEYS, D_MODEL)
        # one more than there are values: a question
        self.values = nn.Embedding(VALUES + 1, D_MODEL)
        self.positions = LearnedPositions(N, D_MODEL)
        parts: list[nn.Module] = []
        for _ in range(layers):
            parts += [Attention(d_k) if row == "attention" else Memory(d_k, row)]
            parts += [FeedForward(D_MODEL, D_FF)]
        self.parts = nn.Sequential(*(PreNorm(part, D_MODEL) for part in parts))
        self.head = nn.Linear(D_MODEL, VALUES)

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        """Return the scores of all values at each place."""
        return self.head(self.parts(self.positions(self.keys(keys) + self.values(values))))


ROWS = (
    "attention",
    "delta rule",
    "gated delta rule",
    "linear attention",
    "RetNet",
    "Mamba-2",
    "decaying average",
)


def measure() -> dict:
    """Return the share of rewritten keys recalled, by row, size, learning rate and seed."""
    arms = [(row, d_k, LAYERS) for d_k in (8, 4, 16) for row in ROWS]
    arms += [("delta rule", d_k, 1) for d_k in (8, 4)]
    runs: dict[str, Any] = {}
    for row, d_k, layers in arms:
        name = f"{row} {d_k}" + ("" if layers == LAYERS else ", one block")
        swept = {
            rate: once(f"{name} {rate} 0", partial(run, row, d_k, layers, rate, 0))
            for rate in RATES
        }
        best = max(swept, key=lambda rate: swept[rate])
        others = [
            once(f"{name} {best} {seed}", partial(run, row, d_k, layers, best, seed))
            for seed in SEEDS[1:]
        ]
        runs[name] = {"swept": {str(rate): share for rate, share in swept.items()}}
        runs[name] |= {"rate": best, "recalled": [swept[best], *others]}
    return {
        "settings": SETTINGS,
        "last": last_value(),
        "runs": runs,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"the value written last, for every question: {figures['last']:.1%}"]
    for name, arm in figures["runs"].items():
        shares = " ".join(f"{share:.1%}" for share in arm["recalled"])
        swept = ", ".join(f"{rate}: {share:.1%}" for rate, share in arm["swept"].items())
        lines.append(f"{name:28} {shares}   at {arm['rate']} (seed 0 at {swept})")
    return lines


def texts(size: int, seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield keys, values, the right answers, and whether the asked key was written more than once.

    The last tokens of a text are questions; elsewhere there is no answer, -100.
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        keys = torch.randint(0, KEYS, (size, WRITES), generator=generator)
        values = torch.randint(0, VALUES, (size, WRITES), generator=generator)
        # ask for keys that have been written
        places = torch.rand(size, WRITES, generator=generator).argsort(-1)[:, :QUESTIONS]
        asked = keys.gather(1, places)
        same = asked.unsqueeze(-1) == keys.unsqueeze(-2)
        # the newest place at which the key was written
        newest = (same * torch.arange(1, WRITES + 1)).argmax(-1)
        answers = torch.full((size, N), -100)
        answers[:, WRITES:] = values.gather(1, newest)
        questions = torch.full((size, QUESTIONS), VALUES)
        again = same.sum(-1) > 1
        yield torch.cat([keys, asked], 1), torch.cat([values, questions], 1), answers, again


def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean cross-entropy of the answers, in nats."""
    keys, values, answers, _ = batch
    return F.cross_entropy(model(keys, values).flatten(0, 1), answers.flatten())


def run(row: str, d_k: int, layers: int, rate: float, seed: int) -> float:
    """Train a reader; return the share of questions about rewritten keys that it answers right."""
    with training.seeded(seed):
        model = Reader(row, d_k, layers)
    training.train(model, texts(BATCH, seed), loss, steps=STEPS, learning_rate=rate, seed=seed)
    keys, values, answers, again = next(texts(TESTED, 1000))
    with torch.no_grad():
        right = model(keys, values)[:, WRITES:].argmax(-1) == answers[:, WRITES:]
    return right[again].float().mean().item()


def last_value() -> float:
    """Return the share of those questions whose answer is the value written last of all."""
    _, values, answers, again = next(texts(TESTED, 1000))
    right = values[:, WRITES - 1 : WRITES] == answers[:, WRITES:]
    return right[again].float().mean().item()
