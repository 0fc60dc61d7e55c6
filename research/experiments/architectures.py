"""Lesson 12: six ways to build a translator, from letters to sounds, at equal operations.

Each point is a training of its own, whose learning rate falls to 0 at the end of its budget. The
operations are counted by torch, as it executes them, and never measured by a clock.
"""

import functools
import itertools
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_lib.attention import attend, softmax
from course_lib.data import spelling
from course_lib.instruments import results, training
from course_lib.instruments.convolutions import (
    ConvolutionalDecoderBlock,
    ConvolutionalEncoderBlock,
)
from course_lib.scaling import Mixture, load_balance, route
from course_lib.seq2seq import PAD, START, STOP, Seq2Seq
from course_lib.transformer import DecoderBlock, EncoderBlock, Transformer, greedy
from course_lib.translation import bleu

LESSON = "12"
SEEDS = (0, 1, 2)

BUDGET = 1e12  # operations of the longest trainings
SHARES = (0.125, 0.25, 0.5, 1.0)  # of the budget: each is trained by itself
RATES = (0.001, 0.003, 0.01, 0.03)  # of which each architecture takes its best ...
CHOSEN_AT, CHOSEN_BY = 0.25, 3  # ... at this share of the budget, by another seed
BATCH, TESTED, BALANCE = 64, 2000, 0.01
SETTINGS = {
    "budget": BUDGET,
    "shares": SHARES,
    "rates": RATES,
    "chosen_at": CHOSEN_AT,
    "batch": BATCH,
    "tested": TESTED,
    "balance": BALANCE,
}
once = partial(results.once, "architectures", SETTINGS)  # what an ended run has measured is kept

Batch = tuple[Tensor, Tensor]


class Balanced(Mixture):
    """A mixture that keeps its balance loss of the last batch."""

    def forward(self, x: Tensor) -> Tensor:
        """Send each token through its experts, and measure how unevenly they are used."""
        chosen, _ = route(x, self.w, self.k)
        probabilities = softmax(x @ self.w).flatten(0, -2)
        self.balance = load_balance(probabilities, chosen.flatten(0, -2))
        return super().forward(x)


def gru(**options: Any) -> Seq2Seq:
    """Make a bidirectional encoder and a decoder, of one layer each."""
    sizes = {"d_embedding": 64, "d_hidden": 128, "bidirectional": True}
    return Seq2Seq(len(spelling.LETTERS), len(spelling.SOUNDS), **sizes, **options)


def transformer(d_model: int, layers: int = 2, **blocks: Callable[..., nn.Module]) -> Transformer:
    """Make a Transformer with pre-norm; letters and sounds have embeddings of their own."""
    vocab = max(len(spelling.LETTERS), len(spelling.SOUNDS))
    longest = spelling.LONGEST
    return Transformer(
        vocab, layers, d_model, 4, 4 * d_model, longest, norm="pre", tied=False, **blocks
    )


def experts(block: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Return the block with eight experts of half the width, of which each token uses two."""

    def halves(d_model: int, d_ff: int) -> nn.Module:
        return Balanced(d_model, d_ff // 2, experts=8, k=2)

    return partial(block, feed_forward=halves)


CONVOLUTIONS = {
    "encoder_block": ConvolutionalEncoderBlock,
    "decoder_block": ConvolutionalDecoderBlock,
}
EXPERTS = {"encoder_block": experts(EncoderBlock), "decoder_block": experts(DecoderBlock)}
MODELS: dict[str, Callable[[], nn.Module]] = {
    "GRU": gru,
    "GRU with attention": partial(gru, attend=attend),
    "convolutions": partial(transformer, 64, layers=3, **CONVOLUTIONS),
    "Transformer, small": partial(transformer, 64),
    "Transformer, big": partial(transformer, 128),
    "mixture of experts": partial(transformer, 64, **EXPERTS),
}


def measure() -> dict:
    """Return the losses by learning rate of each architecture, and one row for each training."""
    rates = {name: once(f"{name}, rates", partial(losses_by_rate, name)) for name in MODELS}
    best = {name: float(min(losses, key=losses.__getitem__)) for name, losses in rates.items()}
    rows = [
        once(f"{name}, {share}, {seed}", partial(run, name, share, seed, best[name]))
        for share in SHARES
        for seed in SEEDS
        for name in MODELS
    ]
    parameters = {
        name: sum(p.numel() for p in make().parameters()) for name, make in MODELS.items()
    }
    return {"settings": SETTINGS, "parameters": parameters, "rates": rates, "rows": rows}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"{'operations':27}" + "".join(f"{share * BUDGET:>18.2e}" for share in SHARES)]
    for name, seed in itertools.product(MODELS, SEEDS):
        rows = [row for row in figures["rows"] if (row["name"], row["seed"]) == (name, seed)]
        cells = (f"{row['right']:.1%} {row['bleu']:5.1f}" for row in rows)
        lines.append(f"{name:20} seed {seed}" + "".join(f"{cell:>18}" for cell in cells))
    return [*lines, "words that are all right, and BLEU of the sounds"]


@functools.cache
def words() -> tuple[list[spelling.Pair], list[spelling.Pair]]:
    """Return the pairs to train on, and those of the held-out words that are tested.

    These are the first ones by their check sums, the same for every model.
    """
    learning, held_out = spelling.split()
    by_sum = sorted({word for word, _ in held_out}, key=lambda word: zlib.crc32(word.encode()))
    tested = set(by_sum[:TESTED])
    return learning, [pair for pair in held_out if pair[0] in tested]


def batches(seed: int) -> Iterator[Batch]:
    """Yield batches without end, the same for every architecture."""
    return spelling.batches(words()[0], BATCH, seed)


def logits(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """Score what follows each token of the target."""
    if isinstance(model, Seq2Seq):
        return model(source, target)
    return model(source, target, (source != PAD)[:, None])


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy of the next sounds, in nats, and what balances experts."""
    source, target = batch
    scores = logits(model, source, target[:, :-1])
    error = F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
    return error + balance(model)


def balance(model: nn.Module) -> Tensor | float:
    """Return what a model adds to its loss so that its experts are used alike."""
    layers = [layer for layer in model.modules() if isinstance(layer, Balanced)]
    return BALANCE * sum(layer.balance for layer in layers)


@functools.cache
def work(name: str, letters: int, sounds: int) -> int:
    """Count the operations of a training step, for one word of so many tokens.

    A batch takes as many times the work as it has words: padding is computed like a token, and
    every token takes k experts, whichever. (The balance of a whole batch is a few products.)
    """
    with training.seeded(0):
        model = MODELS[name]()
    source, target = torch.full((1, letters), STOP), torch.full((1, sounds), STOP)
    with FlopCounterMode(display=False) as counter:
        loss(model, (source, target)).backward()
    return counter.get_total_flops()


def steps_within(name: str, budget: float, stream: Iterator[Batch]) -> tuple[int, int]:
    """Return how many steps the budget pays, and the operations that they take."""
    steps = spent = 0
    for source, target in stream:
        more = len(source) * work(name, source.shape[1], target.shape[1])
        if spent + more > budget:
            break
        steps, spent = steps + 1, spent + more
    return steps, spent


def train(name: str, share: float, seed: int, rate: float) -> tuple[nn.Module, dict[str, Any]]:
    """Train a model for a share of the budget; return it, and what the training took."""
    steps, flops = steps_within(name, share * BUDGET, batches(seed))
    with training.seeded(seed):
        model = MODELS[name]()
    start = time.process_time()
    training.train(model, batches(seed), loss, steps=steps, learning_rate=rate, seed=seed)
    spent = round(time.process_time() - start, 1)
    return model, {"steps": steps, "flops": flops, "cpu_seconds": spent}


def losses_by_rate(name: str) -> dict[str, float]:
    """Return for each learning rate the loss of the last tenth of a training.

    So early no word has come twice, so these are losses of unseen words.
    """
    losses = {}
    for rate in RATES:
        model, took = train(name, CHOSEN_AT, CHOSEN_BY, rate)
        assert took["steps"] * BATCH < len(words()[0])
        history: training.History = vars(model)["history"]
        last = history.losses[-(history.steps // 10) :]
        losses[str(rate)] = round(sum(last) / len(last), 4)
    return losses


def run(name: str, share: float, seed: int, rate: float) -> dict[str, Any]:
    """Train one model and test it."""
    model, took = train(name, share, seed, rate)
    row = {"name": name, "share": share, "seed": seed, "rate": rate} | took | examine(model)
    print(row, flush=True)
    return row


def examine(model: nn.Module) -> dict[str, float]:
    """Return the share of held-out words that are all right, and the BLEU of their sounds.

    A word is right in any of its pronunciations; BLEU compares with the first of them.
    """
    right: dict[str, list[tuple[str, ...]]] = {}
    for word, sounds in words()[1]:
        right.setdefault(word, []).append(sounds)
    asked = sorted(right, key=len)
    said = [sounds for i in range(0, len(asked), 500) for sounds in say(model, asked[i : i + 500])]
    hits = sum(tuple(sounds) in right[word] for word, sounds in zip(asked, said, strict=True))
    score = bleu(said, [right[word][0] for word in asked])
    return {"right": round(hits / len(asked), 4), "bleu": round(score, 2)}


def say(model: nn.Module, asked: list[str]) -> list[list[str]]:
    """Return the sounds that a model writes for each word, greedily."""
    if isinstance(model, Seq2Seq):
        return spelling.pronounce(model, asked)
    assert isinstance(model, Transformer)
    source = spelling.encode_words(asked)
    mask = (source != PAD)[:, None]
    written = greedy(model, source, START, STOP, spelling.LONGEST - 1, mask)
    return [spelling.SOUNDS.decode(row) for row in written.tolist()]
