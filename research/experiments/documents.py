"""Exploration 12_documents: what does a longer input buy a model that writes the next text?

A document is what one integration of Home Assistant says, text after text. A decoder alone is
trained on every token of input and text; its control has the same input and is trained on the
text alone, as the encoder-decoder is. All take equal steps on the same examples. The rival is
counting: of the documents, and of the input itself.
"""

import bisect
import functools
import itertools
import random
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_lib.corpus import NGrams
from course_lib.data import home_assistant, translating
from course_lib.data.batches import pad
from course_lib.data.translating import PAD, START, STOP, Tokens
from course_lib.instruments import results, training
from course_lib.language_model import LanguageModel
from course_lib.masks import shift_right
from course_lib.transformer import Transformer

LESSON = "12_documents"
SEEDS = (0, 1, 2)

FURTHEST = 256  # tokens, at least, that come before a text
LENGTHS = (16, 64)  # tokens of the input, right before the text to be written
MOST = 24  # tokens of a text to be written, its STOP among them
VOCAB, D_MODEL, HEADS, D_FF, LAYERS = 1024, 64, 4, 256, 2
STEPS, BATCH, TESTED = 1000, 16, 1000
EXAMPLE = 4  # of the tested texts, the one that the lesson shows
RATES = (0.0025, 0.005, 0.01, 0.02)  # of which each model takes its best ...
CHOSEN_AT, CHOSEN_BY = 16, 3  # ... at this length, by another seed
SETTINGS = {
    "lengths": LENGTHS,
    "most": MOST,
    "vocab": VOCAB,
    "d_model": D_MODEL,
    "layers": LAYERS,
    "steps": STEPS,
    "batch": BATCH,
    "tested": TESTED,
    "rates": RATES,
    "chosen_at": CHOSEN_AT,
}
once = partial(results.once, "documents", SETTINGS)  # what an ended run has measured is kept

Source = Int[Tensor, "batch length"]
Target = Int[Tensor, "batch most"]


class Place(NamedTuple):
    """A text to be written: its document's tokens, where it begins there, and where it ends."""

    document: Tokens
    start: int
    end: int


@functools.cache
def documents() -> tuple[list[list[str]], list[list[str]]]:
    """Return the texts of each integration: those to learn from, and a tenth that is held out.

    The check sum of an integration's name decides. Raises `store.NotFetched` or `store.Damaged`.
    """
    split: tuple[list[list[str]], list[list[str]]] = ([], [])
    strings = home_assistant.strings()
    for name, keys in itertools.groupby(strings, key=lambda key: key.partition("/")[0]):
        held_out = zlib.crc32(name.encode()) % 10 == 0
        split[held_out].append([strings[key] for key in keys])
    return split


@functools.cache
def pieces() -> translating.Tokenizer:
    """Learn byte pairs from the documents to learn from."""
    return translating.learn_pieces(itertools.chain(*documents()[0]), VOCAB)


def places(texts: list[str]) -> list[Place]:
    """Find the texts of a document that are short enough, with enough tokens before them."""
    encoded = translating.encode(pieces(), texts)
    ends = [*itertools.accumulate(map(len, encoded))]
    document = [*itertools.chain(*encoded)]
    starts = [0, *ends[:-1]]
    first = bisect.bisect_left(starts, FURTHEST)
    spans = zip(starts[first:], ends[first:], strict=True)
    return [Place(document, start, end) for start, end in spans if end - start <= MOST]


@functools.cache
def learning() -> list[Place]:
    """Return every text that can be learned to write."""
    return [*itertools.chain(*map(places, documents()[0]))]


@functools.cache
def tested() -> list[Place]:
    """Return texts of held-out documents, each once; no document to learn from has one of them.

    These are the first ones by their check sums, the same for every model.
    """
    seen = {home_assistant.normalised(text) for texts in documents()[0] for text in texts}
    by_text = {}
    for place in itertools.chain(*map(places, documents()[1])):
        text = home_assistant.normalised(written(place))
        if text not in seen:
            by_text.setdefault(text, place)
    by_sum = sorted(by_text, key=lambda text: (zlib.crc32(text.encode()), text))
    return [by_text[text] for text in by_sum[:TESTED]]


def written(place: Place) -> str:
    """Return the text at a place."""
    return translating.decode(pieces(), place.document[place.start : place.end])


def page(place: Place, length: int) -> list[str]:
    """Return the texts that a model reads before it writes, and the one at the place."""
    document, start, end = place
    tokens = document[start - length : end]
    texts = [[*text] for stop, text in itertools.groupby(tokens, key=STOP.__eq__) if not stop]
    return [translating.decode(pieces(), text) for text in texts]


Batch = tuple[Source, Target]


def stack(some: list[Place], length: int) -> Batch:
    """Return what stands before each text, and the text, filled up with PAD."""
    sources = [document[start - length : start] for document, start, _ in some]
    return torch.tensor(sources), pad([document[start:end] for document, start, end in some], PAD)


def batches(length: int, seed: int) -> Iterator[Batch]:
    """Yield batches without end, the same texts for every model and length."""
    draw = random.Random(seed)
    while True:
        yield stack(draw.sample(learning(), BATCH), length)


class WithPrevious(nn.Module):
    """Embed each token, and through a matrix the token before it: e_i + e_(i-1) W.

    A layer that looks for what followed the same token earlier needs this (Olsson et al. 2022,
    "smeared keys"); a recurrent network has it anyway.
    """

    def __init__(self, embedding: nn.Module, d_model: int):
        super().__init__()
        self.embedding = embedding
        self.weight = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)

    def forward(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n d_model"]:
        """Look the tokens up; the first one has none before it."""
        x = self.embedding(tokens)
        return x + F.pad(x[..., :-1, :] @ self.weight, (0, 0, 1, 0))


def encoder_decoder(length: int) -> Transformer:
    """Make a Transformer that reads the input with its encoder."""
    model = Transformer(VOCAB, LAYERS, D_MODEL, HEADS, D_FF, max(length, MOST), norm="pre")
    for stack in (model.encoder, model.decoder):
        stack.register_module("embedding", WithPrevious(stack.embedding, D_MODEL))
    return model


class TextAlone(LanguageModel):
    """A decoder alone whose loss is that of the text to be written: the input has no targets."""


def decoder(length: int, kind: type[LanguageModel] = LanguageModel) -> LanguageModel:
    """Make a decoder alone: input and text are one sequence to it."""
    model = kind(VOCAB, LAYERS, D_MODEL, HEADS, D_FF, length + MOST)
    model.register_module("embedding", WithPrevious(model.embedding, D_MODEL))
    return model


MODELS: dict[str, Callable[[int], nn.Module]] = {
    "encoder-decoder": encoder_decoder,
    "decoder": decoder,
    "decoder, text alone": partial(decoder, kind=TextAlone),
}


def measure() -> dict:
    """Return the losses by learning rate of each model, and one row for each training."""
    rates = {name: once(f"{name}, rates", partial(losses_by_rate, name)) for name in MODELS}
    best = {name: float(min(losses, key=losses.__getitem__)) for name, losses in rates.items()}
    rows = [
        once(f"{name}, {length}, {seed}", partial(run, name, length, seed, best[name]))
        for seed in SEEDS
        for length in LENGTHS
        for name in MODELS
    ]
    work = {name: {str(length): operations(name, length) for length in LENGTHS} for name in MODELS}
    return {
        "settings": SETTINGS,
        "documents": [*map(len, documents())],
        "texts": len(learning()),
        "example": page(tested()[EXAMPLE], CHOSEN_AT),
        "operations": work,
        "rates": rates,
        "counting": {str(length): counting(length) for length in LENGTHS},
        "rows": rows,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"{'tokens of the input':30}" + "".join(f"{length:>8}" for length in LENGTHS)]
    for name, seed in itertools.product(MODELS, SEEDS):
        rows = [row for row in figures["rows"] if (row["name"], row["seed"]) == (name, seed)]
        lines.append(f"{name:23} seed {seed}" + "".join(f"{row['loss']:8.3f}" for row in rows))
    counts = "".join(f"{loss:8.3f}" for loss in figures["counting"].values())
    lines.append(f"{'counting':30}{counts}")
    return [*lines, "nats for each token of the texts to be written"]


def predict(
    model: nn.Module, source: Source, target: Target
) -> tuple[Float[Tensor, "batch n vocab"], Int[Tensor, "batch n"]]:
    """Return logits, and the tokens that they should predict; the target's are the last ones.

    A decoder predicts its input as well; what it is not trained on is PAD.
    """
    if isinstance(model, LanguageModel):
        text = torch.cat([source, target], dim=1)
        asked = text[:, 1:].clone()
        if isinstance(model, TextAlone):
            asked[:, : source.shape[1] - 1] = PAD
        return model(text[:, :-1]), asked
    return model(source, shift_right(target, START)), target


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy of all that the model is to predict."""
    logits, tokens = predict(model, *batch)
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten(), ignore_index=PAD)


def train(name: str, length: int, seed: int, rate: float) -> tuple[nn.Module, float]:
    """Train a model; return it, and the seconds of processor that it took."""
    with training.seeded(seed):
        model = MODELS[name](length)
    start = time.process_time()
    stream = batches(length, seed)
    training.train(model, stream, loss, steps=STEPS, learning_rate=rate, seed=seed)
    return model, round(time.process_time() - start, 1)


def losses_by_rate(name: str) -> dict[str, float]:
    """Return for each learning rate the loss of texts that were learned from, drawn anew."""
    some = random.Random(CHOSEN_BY).sample(learning(), TESTED)
    models = {rate: train(name, CHOSEN_AT, CHOSEN_BY, rate)[0] for rate in RATES}
    return {str(rate): examine(model, some, CHOSEN_AT) for rate, model in models.items()}


def run(name: str, length: int, seed: int, rate: float) -> dict[str, Any]:
    """Train one model and test it, also with all but the end of its input cut off."""
    model, spent = train(name, length, seed, rate)
    cut = {str(n): examine(model, tested(), n) for n in LENGTHS if n <= length}
    row = {"name": name, "length": length, "seed": seed, "rate": rate, "cpu_seconds": spent}
    row |= {"loss": cut[str(length)], "cut": cut}
    print(row, flush=True)
    return row


@torch.no_grad()
def examine(model: nn.Module, some: list[Place], length: int) -> float:
    """Return the mean loss of the texts' tokens, in nats, when the model reads so much before."""
    total = count = 0
    for i in range(0, len(some), 50):
        source, target = stack(some[i : i + 50], length)
        logits, _ = predict(model, source, target)
        last = logits[:, -target.shape[1] :].flatten(0, 1)
        total += F.cross_entropy(last, target.flatten(), ignore_index=PAD, reduction="sum").item()
        count += (target != PAD).sum().item()
    return round(total / count, 4)


def operations(name: str, length: int) -> int:
    """Count the operations of a training step whose texts all have `MOST` tokens."""
    model = MODELS[name](length)
    batch = torch.full((BATCH, length), START), torch.full((BATCH, MOST), START)
    with FlopCounterMode(display=False) as counter:
        loss(model, batch).backward()
    return counter.get_total_flops()


@functools.cache
def counted() -> NGrams:
    """Count what follows two tokens in the documents to learn from."""
    tokens = [*itertools.chain(*(translating.encode(pieces(), x) for x in documents()[0]))]
    return NGrams(torch.tensor([*itertools.chain(*tokens)]), VOCAB, order=3)


def counting(length: int) -> float:
    """Return the loss of the mean of two counts: of the documents, and of the input.

    In the input, what is counted is what followed the last token each time it came before; where
    it did not, the documents count alone.
    """
    losses = []
    for document, start, end in tested():
        text = torch.tensor(document[start - length : end])
        known = counted().probabilities(text[length - 2 : -1])[1:]
        for place, shares in enumerate(known, start=length):
            share = shares[text[place]]
            before = (text[: place - 1] == text[place - 1]).nonzero().squeeze(-1)
            if len(before):
                share = (share + (text[before + 1] == text[place]).float().mean()) / 2
            losses.append(-share.log().item())
    return round(sum(losses) / len(losses), 4)
