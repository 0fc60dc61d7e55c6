"""Lesson 15: who recalls the newest value of a key, in equal CPU-seconds, with how much memory?"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import PreNorm
from course_lib.delta_rule import delta_rule_in_chunks
from course_lib.efficient.linear import linear_attention
from course_lib.feed_forward import FeedForward
from course_lib.instruments import results, training
from course_lib.masks import causal_mask
from course_lib.positions import LearnedPositions
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.state_space import selective

LESSON = "15"
SEEDS = (0, 1, 2)

CPU_SECONDS = 5.0  # of each training
KEYS, VALUES = 12, 16
WRITES, QUESTIONS = 24, 8  # a key is written about twice, and its newest value counts
N = WRITES + QUESTIONS
D_MODEL, D_FF, LAYERS = 64, 128, 2
BATCH, LEARNING_RATE = 32, 0.004
TESTED = 512  # texts
SIZES = (4, 8, 16)  # numbers of a key


SETTINGS = {
    "cpu_seconds": CPU_SECONDS,
    "keys": KEYS,
    "values": VALUES,
    "writes": WRITES,
    "questions": QUESTIONS,
    "d_model": D_MODEL,
    "layers": LAYERS,
    "batch": BATCH,
    "learning_rate": LEARNING_RATE,
}
once = partial(results.once, "newest_value", SETTINGS)  # what an ended run has measured is kept


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


class Linear(Attention):
    """One head of linear attention: keys and values are summed up."""

    def forward(self, x: Tensor) -> Tensor:
        """Let each token read the sum."""
        return self.out(linear_attention(self.q(x), self.k(x), self.v(x), causal=True))


class Delta(Attention):
    """One head of the delta rule: a key's old value is replaced."""

    def __init__(self, d_k: int):
        super().__init__(d_k)
        self.share = nn.Linear(D_MODEL, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Let each token correct the state, and read it."""
        q, k = (F.normalize(F.silu(part(x)), dim=-1) for part in (self.q, self.k))
        beta = self.share(x).squeeze(-1).sigmoid()
        return self.out(delta_rule_in_chunks(q, k, self.v(x), beta))


class Selective(nn.Module):
    """A selective state space: each channel has s numbers, and forgets by what is read."""

    def __init__(self, s: int):
        super().__init__()
        self.b, self.c = (nn.Linear(D_MODEL, s) for _ in range(2))
        self.x, self.delta, self.out = (nn.Linear(D_MODEL, D_MODEL) for _ in range(3))
        self.log_a = nn.Parameter(torch.arange(1.0, s + 1).log().expand(D_MODEL, s).clone())
        nn.init.constant_(self.delta.bias, -2.0)

    def forward(self, x: Tensor) -> Tensor:
        """Let each token write into the state, and read it."""
        delta = F.softplus(self.delta(x))
        return self.out(selective(self.x(x), delta, -self.log_a.exp(), self.b(x), self.c(x)))


class Reader(nn.Module):
    """Two blocks, each of a mixer and a feed-forward network, that name a value at each place."""

    def __init__(self, mixer: Callable[[], nn.Module]):
        super().__init__()
        self.keys = nn.Embedding(KEYS, D_MODEL)
        # one more than there are values: a question
        self.values = nn.Embedding(VALUES + 1, D_MODEL)
        self.positions = LearnedPositions(N, D_MODEL)
        blocks = [(mixer(), FeedForward(D_MODEL, D_FF)) for _ in range(LAYERS)]
        self.parts = nn.Sequential(*(PreNorm(part, D_MODEL) for block in blocks for part in block))
        self.head = nn.Linear(D_MODEL, VALUES)

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        """Return the scores of all values at each place."""
        return self.head(self.parts(self.positions(self.keys(keys) + self.values(values))))


# each mixer, and how many numbers a layer has to keep when it has read n tokens
MIXERS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "attention": (partial(Attention, 16), N * (16 + D_MODEL)),
    **{f"linear attention {d}": (partial(Linear, d), d * (D_MODEL + 1)) for d in SIZES},
    **{f"delta rule {d}": (partial(Delta, d), d * D_MODEL) for d in SIZES},
    "state space 4": (partial(Selective, 4), 4 * D_MODEL),
}


def measure() -> dict:
    """Return shares of questions that are answered right, by mixer and seed."""
    runs = {}
    for name, (mixer, _) in MIXERS.items():
        steps = round(CPU_SECONDS / once(name, partial(seconds_a_step, mixer)))
        runs[name] = [once(f"{name} {seed}", partial(run, mixer, seed, steps)) for seed in SEEDS]
    return {
        "settings": SETTINGS,
        "memory": {name: memory for name, (_, memory) in MIXERS.items()},
        "runs": runs,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for name, runs in figures["runs"].items():
        shares = " ".join(f"{run['once']:.1%}/{run['again']:.1%}" for run in runs)
        spent = " ".join(f"{run['cpu_seconds']:.1f}" for run in runs)
        memory = figures["memory"][name]
        lines.append(
            f"{name:20} {memory:6} numbers   {shares}   {runs[0]['steps']} steps, {spent} s"
        )
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


def seconds_a_step(mixer: Callable[[], nn.Module], times: int = 10) -> float:
    """Measure what a step of training costs, in CPU-seconds: the mean of several."""
    model, stream = Reader(mixer), texts(BATCH, 0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for i in range(times + 3):
        if i == 3:
            start = time.process_time()
        optimizer.zero_grad()
        loss(model, next(stream)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.CLIP)
        optimizer.step()
    return (time.process_time() - start) / times


def run(mixer: Callable[[], nn.Module], seed: int, steps: int) -> dict[str, float]:
    """Train a reader; return how often it answers right: keys written once, and more often."""
    with training.seeded(seed):
        model = Reader(mixer)
    start = time.process_time()
    training.train(
        model, texts(BATCH, seed), loss, steps=steps, learning_rate=LEARNING_RATE, seed=seed
    )
    spent = time.process_time() - start
    return {"steps": steps, "cpu_seconds": round(spent, 2)} | shares_right(model)


@torch.no_grad()
def shares_right(model: nn.Module) -> dict[str, float]:
    """Return the shares of right answers, for keys that were written once and more than once."""
    keys, values, answers, again = next(texts(TESTED, 1000))
    right = model(keys, values)[:, WRITES:].argmax(-1) == answers[:, WRITES:]
    return {
        "once": right[~again].float().mean().item(),
        "again": right[again].float().mean().item(),
    }
