"""Lesson 16: one task where counting is as good. The same model learns it with and without reading.

The task is whether twelve words of a play are in the play's order. The rate is chosen for each
number of labels, on examples from plays that were read. The baseline is an n-gram model of the same
plays. The weights of the first seed's model are kept.
"""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.corpus import NGrams
from course_lib.data import characters, plays
from course_lib.data.plays import Example
from course_lib.instruments import results, training
from course_lib.instruments.weights import save_weights
from course_lib.language_model import cross_entropy
from course_lib.pretrained.play_reader import MASK, MODEL, NAME, UNKNOWN, Reader, Vocabulary, blanks
from course_lib.pretraining import IGNORED, hide_each, mask_tokens, masked_loss

LESSON = "16"
SEEDS = (0, 1, 2)

TASK = "order"
LABELS = (50, 200, 800, 3200)
TESTS = 1200
READING: dict[str, Any] = {"steps": 1500, "learning_rate": 3e-3}
BATCH, SHARE = 32, 0.15
CHOOSING = 1000  # examples from plays that were read, which choose the rate and the penalty
STEPS, RATES = 400, (0.0003, 0.001, 0.003)
LONGER = 2000  # steps of a control: the model that is not pretrained, with the most labels
PENALTIES = (0.001, 0.01, 0.1, 1.0)
SETTINGS = {
    "reading": READING, "model": MODEL, "labels": LABELS, "choosing": CHOOSING,
    "steps": STEPS, "rates": RATES, "penalties": PENALTIES, "tests": TESTS,
}  # fmt: skip
once = partial(results.once, "few_labels", SETTINGS)  # what an ended run has measured is kept

Vectors = tuple[Float[Tensor, "m d"], Int[Tensor, " m"]]


@cache
def vocabulary() -> Vocabulary:
    """Number the words of the plays that are read."""
    return Vocabulary(plays.texts_to_read())


class Classifier(nn.Module):
    """A reader and a linear head on the mean of its states."""

    def __init__(self, reader: Reader, classes: int):
        super().__init__()
        self.reader, self.head = reader, nn.Linear(MODEL["d_model"], classes)

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch classes"]:
        """Score the answers."""
        return self.head(self.reader.states(tokens).mean(-2))


def task_loss(model: Classifier, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the labels, in nats."""
    tokens, labels = batch
    return F.cross_entropy(model(tokens), labels)


def masked(text: Int[Tensor, " all"], vocab: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield stretches of the text without end, some of their words hidden, and what these were."""
    for step, (tokens, _) in enumerate(characters.batches(text, MODEL["max_length"], BATCH, seed)):
        yield mask_tokens(tokens, SHARE, MASK, vocab, (), seed=seed * 1_000_000 + step)


def read(reader: Reader, seed: int) -> None:
    """Let a reader fill in masked words of the plays that are read."""
    text = vocabulary().encode(plays.texts_to_read())

    def loss(reader: Reader, batch: tuple[Tensor, Tensor]) -> Tensor:
        return masked_loss(reader.states(batch[0]), reader.output.weight, batch[1])

    training.train(reader, masked(text, len(vocabulary()), seed), loss, seed=seed, **READING)


def tensors(examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """Return the tokens (examples, n) and the labels."""
    tokens = torch.stack([vocabulary().encode(example.words) for example in examples])
    return tokens, labels_of(examples)


def shuffled(tokens: Tensor, labels: Tensor, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches without end, in a new order for each round through the examples."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(labels), generator=generator).split(BATCH):
            yield tokens[rows], labels[rows]


def share_right(scores: Float[Tensor, "m classes"], labels: Int[Tensor, " m"]) -> float:
    """Return the share of examples whose answer gets the highest score."""
    return round((scores.argmax(-1) == labels).float().mean().item(), 4)


def linear(
    x: Float[Tensor, "m d"],
    labels: Int[Tensor, " m"],
    others: Float[Tensor, "k d"],
    penalty: float,
) -> Float[Tensor, "k classes"]:
    """Fit a linear head, and nothing else, to the vectors x; score the others."""
    classes = int(labels.max()) + 1
    w = torch.zeros(x.shape[-1], classes, requires_grad=True)
    b = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([w, b], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(x @ w + b, labels) + penalty / 2 * w.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return (others @ w + b).detach()


@cache
def log_frequencies() -> Float[Tensor, " vocab"]:
    """Return log p of each word by itself, in the plays that are read."""
    often = torch.bincount(vocabulary().encode(plays.texts_to_read()), minlength=len(vocabulary()))
    return ((often + 0.5) / (often + 0.5).sum()).log()


def split(seed: int) -> tuple[list[Example], list[Example]]:
    """Draw the labelled examples of a seed, and those that choose."""
    drawn = plays.examples(TASK, plays.READ, max(LABELS) + CHOOSING, seed)
    return drawn[: max(LABELS)], drawn[max(LABELS) :]


def testing() -> list[Example]:
    """Draw the examples of the test, from plays that were not read."""
    return plays.examples(TASK, plays.TESTED, TESTS, 0)


@cache
def readers(seed: int) -> dict[str, Reader]:
    """Make the model of a seed, and pretrain it."""
    path = results.UNFINISHED / f"few_labels_{seed}.pt"
    with training.seeded(seed):
        made = Reader(len(vocabulary()), causal=False)
    pretrained = copy.deepcopy(made)
    if path.is_file():
        pretrained.load_state_dict(torch.load(path))
    else:
        read(pretrained, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(pretrained.state_dict(), path)
    if seed == SEEDS[0]:
        save_weights(NAME, pretrained)
    return {"not pretrained": made, "pretrained": pretrained}


def tune(way: str, labels: int, rate: float, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Tune a copy of a model and a new head; return the shares right."""
    learned, choosing = split(seed)
    reader = copy.deepcopy(readers(seed)[way])
    with training.seeded(seed):
        model = Classifier(reader, 2)
    tokens, classes = tensors(learned[:labels])
    stream = shuffled(tokens, classes, seed)
    training.train(model, stream, task_loss, steps=steps, learning_rate=rate, seed=seed)
    shares = {}
    with torch.no_grad():
        for name, part in (("choosing", choosing), ("test", testing())):
            tokens, right = tensors(part)
            shares[name] = share_right(model(tokens), right)
    return shares


def labels_of(examples: Sequence[Example]) -> Int[Tensor, " m"]:
    """Return the right answers."""
    return torch.tensor([example.label for example in examples])


def frozen(learned: Vectors, choosing: Vectors, test: Vectors, labels: int) -> dict[str, float]:
    """Fit a linear head to vectors, with the penalty that is best on the choosing ones."""
    x, classes = (part[:labels] for part in learned)
    centre, scale = x.mean(0), x.std(0).clamp(min=1e-6)

    def right(of: Vectors, penalty: float) -> float:
        others = (of[0] - centre) / scale
        return share_right(linear((x - centre) / scale, classes, others, penalty), of[1])

    best = max(PENALTIES, key=lambda penalty: right(choosing, penalty))
    return {"choosing": right(choosing, best), "test": right(test, best)}


@torch.no_grad()
def states(reader: Reader, examples: Sequence[Example]) -> Float[Tensor, "m d"]:
    """Describe each example by the mean of a model's states."""
    return reader.states(tensors(examples)[0]).mean(-2)


@torch.no_grad()
def hidden_one_by_one(reader: Reader, examples: Sequence[Example]) -> Float[Tensor, "m 1"]:
    """Describe each example by one number: the mean log p of its words, each hidden in turn."""
    found = []
    for rows in tensors(examples)[0].split(50):
        inputs, targets = hide_each(rows, MASK, (UNKNOWN,))
        scores = reader.output(reader.states(inputs.flatten(0, 1))).log_softmax(-1)
        asked = targets.flatten(0, 1)
        chosen = scores.gather(-1, asked.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        chosen = chosen.masked_fill(asked == IGNORED, 0).view(inputs.shape)
        found.append(chosen.sum((-1, -2)) / (targets != IGNORED).sum((-1, -2)).clamp(min=1))
    return torch.cat(found).unsqueeze(-1)


@cache
def counted(order: int, half: int | None) -> NGrams:
    """Count what follows the last words in the plays that are read, or in half of these."""
    titles = plays.READ if half is None else plays.READ[half::2]
    tokens = vocabulary().encode([word for title in titles for word in plays.stream(title)])
    return NGrams(tokens, len(vocabulary()), order)


@cache
def first_half() -> set[tuple[str, ...]]:
    """Return the words of each twelve in the first half of the plays, sorted."""
    some = (speech for title in plays.READ[::2] for speech in plays.speeches(title))
    return {tuple(sorted(x)) for speech in some for x in plays.cut(speech.words, plays.ORDER)}


def by_counts(order: int, examples: Sequence[Example], held_out: bool) -> Float[Tensor, "m 1"]:
    """Describe each example by one number: the mean log p of its words after the first.

    Counts know their own plays too well, so an example of a play that is read is scored by the
    counts of the other half of them (Wolpert 1992).
    """
    found = []
    for example in examples:
        in_first = tuple(sorted(example.words)) in first_half()
        counts = counted(order, None if held_out else int(in_first))
        tokens = vocabulary().encode(example.words)
        shares = counts.probabilities(tokens[:-1])
        found.append(shares.gather(-1, tokens[1:].unsqueeze(-1)).log().mean())
    return torch.stack(found).unsqueeze(-1)


def above_frequencies(
    x: Float[Tensor, "m 1"], examples: Sequence[Example], first: int
) -> Float[Tensor, "m 1"]:
    """Subtract the mean log frequency of the words that were scored, those from `first` on."""
    scored = tensors(examples)[0][:, first:]
    # the masked model is never asked for an unknown word; counts are
    known = (scored != UNKNOWN) | (first > 0)
    frequencies = (log_frequencies()[scored] * known).sum(-1) / known.sum(-1).clamp(min=1)
    return x - frequencies.unsqueeze(-1)


def shares(counts: NGrams, contexts: list[Tensor], words: Tensor) -> Tensor:
    """Return P(word | context) for single words; `contexts` has one number for each order.

    It is an entry of what `NGrams.probabilities` gives, without the rest of its row.
    """
    found = torch.full(words.shape, 1 / counts.vocab)
    for order, context in zip(counts.orders, contexts, strict=True):
        grams = order.contexts.repeat_interleave(order.size) * counts.vocab + order.following
        at = torch.searchsorted(order.contexts, context.contiguous()).clamp(
            max=len(order.contexts) - 1
        )
        gram = context * counts.vocab + words
        row = torch.searchsorted(grams, gram).clamp(max=len(grams) - 1)
        own = torch.where(grams[row] == gram, order.share[row], torch.zeros(()))
        longer = order.reserved[at] * found + own
        found = torch.where(order.contexts[at] == context, longer, found)
    return found


def counting_on_both_sides() -> dict[str, float]:
    """Fill in blanks by counts: p(x | a, b) p(c | b, x) p(d | x, c), for "a b x c d"."""
    counts, rows, size = counted(3, None), blanks(vocabulary()), len(vocabulary())
    scores = []
    for part in rows.split(200):
        shape = (len(part), size)
        x, none = torch.arange(size).expand(shape), torch.zeros(shape, dtype=torch.long)
        b, c, d = (part[:, place, None].expand(shape) for place in (11, 13, 14))
        left = counts.probabilities(part[:, :12])[:, -1].log()
        right = shares(counts, [none, x, b * size + x], c).log()
        scores.append(left + right + shares(counts, [none, c, x * size + c], d).log())
    logits = torch.cat(scores).index_fill(-1, torch.tensor([UNKNOWN, MASK]), -torch.inf)
    return {
        "right": (logits.argmax(-1) == rows[:, 12]).float().mean().item(),
        "loss": cross_entropy(logits, rows[:, 12]).item(),
    }


def describe(
    name: str, examples: Sequence[Example], seed: int, held_out: bool
) -> Float[Tensor, "m d"]:
    """Describe each example by what a model or a count says."""
    ways: dict[str, Callable[[Sequence[Example]], Tensor]] = {
        "pretrained, frozen": lambda x: states(readers(seed)["pretrained"], x),
        "each word hidden": lambda x: hidden_one_by_one(readers(seed)["pretrained"], x),
        "three words counted": partial(by_counts, 3, held_out=held_out),
    }
    corrected = {"each word hidden, corrected": 0, "three words counted, corrected": 1}
    if name in corrected:
        plain = ways[name.removesuffix(", corrected")](examples)
        return above_frequencies(plain, examples, corrected[name])
    return ways[name](examples)


def measure_frozen(name: str, seed: int) -> dict[str, dict[str, float]]:
    """Fit a linear head to what a model or a count says, for each number of labels."""
    test = testing()
    learned, choosing, tested = (
        (describe(name, part, seed, part is test), labels_of(part)) for part in (*split(seed), test)
    )
    return {str(labels): frozen(learned, choosing, tested, labels) for labels in LABELS}


FROZEN = (
    "pretrained, frozen", "each word hidden", "three words counted",
    "each word hidden, corrected", "three words counted, corrected",
)  # fmt: skip


def measure() -> dict[str, Any]:
    """Return the shares right: of each tuning by labels, rate and seed, and of the frozen ways."""
    torch.set_num_threads(1)
    start = time.process_time()
    held = {
        name: [once(f"{name} {seed}", partial(measure_frozen, name, seed)) for seed in SEEDS]
        for name in FROZEN
    }
    tuned = {
        way: {
            str(labels): {
                str(rate): [
                    once(f"{way} {labels} {rate} {seed}", partial(tune, way, labels, rate, seed))
                    for seed in SEEDS
                ]
                for rate in RATES
            }
            for labels in LABELS
        }
        for way in ("not pretrained", "pretrained")
    }
    longer = [
        once(f"longer {seed}", partial(tune, "not pretrained", LABELS[-1], 0.001, seed, LONGER))
        for seed in SEEDS
    ]
    spent = round(time.process_time() - start, 1)
    figures = {"settings": SETTINGS, "tuned": tuned, "frozen": held, "longer": longer}
    filled = once("both sides", counting_on_both_sides)
    return figures | {"both sides": filled, "cpu_seconds": spent}


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text: the share right in the test, by seed."""
    lines = [f"{'labels':32}" + "".join(f"{labels:<20}" for labels in LABELS)]
    for way, by_labels in figures["tuned"].items():
        for rate in RATES:
            found = (by_labels[str(labels)][str(rate)] for labels in LABELS)
            cells = (" ".join(f"{one['test']:.3f}" for one in runs) for runs in found)
            lines.append(f"{f'{way}, {rate}':32}" + "".join(f"{cell:20}" for cell in cells))
    for way, runs in figures["frozen"].items():
        cells = (" ".join(f"{one[str(labels)]['test']:.3f}" for one in runs) for labels in LABELS)
        lines.append(f"{way:32}" + "".join(f"{cell:20}" for cell in cells))
    return lines
