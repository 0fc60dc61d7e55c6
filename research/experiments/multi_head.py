"""Lesson 06: relations that one head cannot hold at once, and what heads learn from Shakespeare."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax
from course_lib.data import characters
from course_lib.data.pointers import several
from course_lib.feed_forward import FeedForward
from course_lib.instruments import training
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention, split_heads
from course_lib.positions import sinusoidal

LESSON = "06"
SEEDS = (0, 1, 2)

HEADS = (1, 2, 4, 8)
WANTED = (1, 2, 4)  # numbers that each word must fetch
POINTERS = {"n": 5, "d_model": 32, "batch": 64, "steps": 600, "learning_rate": 0.03}
READER = {"n": 64, "d_model": 64, "heads": 4, "batch": 32, "steps": 800, "learning_rate": 0.005}
TESTED = 200  # stretches of held-out text, on which the reader is measured


def measure() -> dict:
    """Return the share explained by each number of heads, and what a reader's heads look at."""
    return {
        "settings": {"pointers": POINTERS, "reader": READER},
        "heads": list(HEADS),
        "wanted": list(WANTED),
        "explained": [
            [[explained(heads, wanted, seed) for heads in HEADS] for wanted in WANTED]
            for seed in SEEDS
        ],
        "one head": [measure_reader(1, seed) for seed in SEEDS],
        "reader": [measure_reader(READER["heads"], seed) for seed in SEEDS],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = ["share explained, heads " + "".join(f"{heads:8}" for heads in figures["heads"])]
    for seed, rows in enumerate(figures["explained"]):
        for wanted, shares in zip(figures["wanted"], rows, strict=True):
            shown = "".join(f"{share:8.3f}" for share in shares)
            lines.append(f"seed {seed}, {wanted} wanted        {shown}")
    for name in ("one head", "reader"):
        for seed, run in enumerate(figures[name]):
            lines += ["", f"{name}, seed {seed}: loss {run['loss']:.3f}"]
            lines += [
                f"  {key:10}" + "".join(f"{value:8.2f}" for value in run[key])
                for key in ("itself", "previous", "space", "line", "bits", "rise")
            ]
    return lines


class Fetcher(nn.Module):
    """Names choose whom to look at, numbers are carried, and a linear layer reads the answer."""

    def __init__(self, heads: int, wanted: int):
        super().__init__()
        self.attention = MultiHeadAttention(POINTERS["d_model"], heads)
        self.readout = nn.Linear(POINTERS["d_model"], wanted)

    def forward(self, names: Tensor, words: Tensor) -> Tensor:
        """Return the numbers that each word has found."""
        return self.readout(self.attention(names, names, words))


def pointers(
    batch: int, wanted: int, generator: torch.Generator, n: int = POINTERS["n"]
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw words' names (own and wanted), the same with their numbers, and what they look for."""
    names, words, found = several(batch, wanted, n, generator=generator)
    free = POINTERS["d_model"] - names.shape[-1]
    # the number is in the last column
    words = torch.cat([F.pad(words[..., :-1], (0, free)), words[..., -1:]], dim=-1)
    return F.pad(names, (0, free)), words, found


def explained(heads: int, wanted: int, seed: int) -> float:
    """Train a fetcher; return the share of the wanted numbers' variance that it explains."""
    generator = torch.Generator().manual_seed(seed)
    with training.seeded(seed):
        model = Fetcher(heads, wanted)
    training.train(
        model,
        iter(lambda: pointers(POINTERS["batch"], wanted, generator), None),
        squared_error,
        steps=POINTERS["steps"],
        learning_rate=POINTERS["learning_rate"],
        seed=seed,
    )
    batch = pointers(20000, wanted, generator)
    with torch.no_grad():
        return 1 - (squared_error(model, batch) / batch[-1].square().mean()).item()


def squared_error(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return the mean square of what is missing."""
    names, words, found = batch
    return (model(names, words) - found).square().mean()


class Reader(nn.Module):
    """A small causal reader of characters: one layer of attention, one feed-forward network."""

    def __init__(self, vocab: int, d_model: int, heads: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, 4 * d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))
        self.readout = nn.Linear(d_model, vocab)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return each character's vector, with its position added."""
        x = self.embedding(tokens)
        return x + sinusoidal(*x.shape[-2:])

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next character, at each place."""
        x = self.embed(tokens)
        seen = self.norms[0](x)
        x = x + self.attention(seen, seen, seen, causal_mask(tokens.shape[-1]))
        x = x + self.feed_forward(self.norms[1](x))
        return self.readout(self.norms[2](x))


def next_character_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next character, in nats."""
    tokens, following = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


@torch.no_grad()
def measure_reader(heads: int, seed: int) -> dict[str, float | list[float]]:
    """Train a reader; return its loss and, for each head, its gaze and the loss without it.

    The gaze is a mean weight: on the character itself, on the one before it, on the last space
    and the last line break before it; `bits` is the entropy of the weights, `rise` the rise of
    the loss when the head is switched off.
    """
    learning, held_out = characters.split()
    with training.seeded(seed):
        model = Reader(len(characters.vocab()), READER["d_model"], heads)
    with torch.enable_grad():
        training.train(
            model,
            characters.batches(learning, READER["n"], READER["batch"], seed),
            next_character_loss,
            steps=READER["steps"],
            learning_rate=READER["learning_rate"],
            seed=seed,
        )
    batch = next(characters.batches(held_out, READER["n"], TESTED, seed=0))
    loss = next_character_loss(model, batch).item()
    return {
        "loss": loss,
        **gaze(model, batch[0]),
        "rise": [loss_without(model, head, batch) - loss for head in range(heads)],
    }


def gaze(model: Reader, tokens: Tensor) -> dict[str, list[float]]:
    """Return where each head looks, on average over the queries that have such a place."""
    n = tokens.shape[-1]
    seen = model.norms[0](model.embed(tokens))
    layer = model.attention
    q, k = (split_heads(w(seen), layer.heads) for w in (layer.w_q, layer.w_k))
    weights = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, causal_mask(n))
    entropy = -(weights * weights.clamp(min=1e-9).log2()).sum(-1)
    targets = {
        "itself": torch.eye(n).bool().expand(len(tokens), n, n),
        "previous": torch.diag(torch.ones(n - 1), -1).bool().expand(len(tokens), n, n),
        "space": last_before(tokens, " "),
        "line": last_before(tokens, "\n"),
    }
    return {
        **{name: mean_weight(weights, target) for name, target in targets.items()},
        "bits": entropy.mean((0, 2)).tolist(),
    }


def last_before(tokens: Tensor, character: str) -> Tensor:
    """Mark, for each query, the last key before it that is this character: (batch, query, key)."""
    marked = tokens == characters.encode(character)
    number = marked.cumsum(-1)
    return marked.unsqueeze(-2) & (number.unsqueeze(-2) == (number - marked.long()).unsqueeze(-1))


def mean_weight(weights: Tensor, target: Tensor) -> list[float]:
    """Return each head's mean weight on the target, over the queries that have one."""
    on_target = (weights * target.unsqueeze(-3)).sum(-1).sum((0, 2))
    return (on_target / target.any(-1).sum()).tolist()


def loss_without(model: Reader, head: int, batch: tuple[Tensor, Tensor]) -> float:
    """Return the loss while the head's columns of w_o are zero."""
    weight = model.attention.w_o.weight
    d_k = len(weight) // model.attention.heads
    kept = weight.clone()
    weight[:, head * d_k : (head + 1) * d_k] = 0
    loss = next_character_loss(model, batch).item()
    weight.copy_(kept)
    return loss
