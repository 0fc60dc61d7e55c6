"""Lesson 16: how many labels is pretraining worth? The same model learns one task with and without.

The task is whether twelve words of a play are in the play's order. The rate is chosen for each
number of labels, on examples from plays that were read. The rivals count pairs of words in the same
plays, or were pretrained on far more text. The weights of the first seed's model are kept.
"""

import copy
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.corpus import NGrams
from course_lib.data import plays
from course_lib.data.plays import Example
from course_lib.instruments import results, training
from course_lib.instruments.weights import save_weights
from course_lib.language_model import cross_entropy
from course_lib.pretrained import smollm2
from course_lib.pretrained.play_reader import MASK, MODEL, NAME, UNKNOWN, Reader, Vocabulary, blanks
from course_lib.pretraining import IGNORED, hide_each
from research.experiments import pretraining
from research.experiments.pretraining import (
    Classifier,
    linear,
    share_right,
    shuffled,
    task_loss,
    tensors,
)

LESSON = "16"
SEEDS = (0, 1, 2)

TASK = "order"
LABELS = (50, 200, 800, 3200)
CHOOSING = 1000  # examples from plays that were read, which choose the rate and the penalty
STEPS, RATES = 400, (0.0003, 0.001, 0.003)
LONGER = 2000  # steps of a control: the model that is not pretrained, with the most labels
PENALTIES = (0.001, 0.01, 0.1, 1.0)
FEW = 400  # tests of the largest model, which is slow, after 200 labels
SETTINGS = {
    "reading": pretraining.READING, "model": MODEL, "labels": LABELS, "choosing": CHOOSING,
    "steps": STEPS, "rates": RATES, "penalties": PENALTIES, "tests": pretraining.TESTS, "few": FEW,
}  # fmt: skip
once = partial(results.once, "few_labels", SETTINGS)  # what an ended run has measured is kept

Vectors = tuple[Float[Tensor, "m d"], Int[Tensor, " m"]]


@cache
def vocabulary() -> Vocabulary:
    """Number the words of the plays that are read."""
    return Vocabulary(plays.texts_to_read())


def split(seed: int) -> tuple[list[Example], list[Example]]:
    """Draw the labelled examples of a seed, and those that choose."""
    drawn = plays.examples(TASK, plays.READ, max(LABELS) + CHOOSING, seed)
    return drawn[: max(LABELS)], drawn[max(LABELS) :]


def testing() -> list[Example]:
    """Draw the examples of the test, from plays that were not read."""
    return pretraining.testing(TASK)


@cache
def readers(seed: int) -> dict[str, Reader]:
    """Make the model of a seed, and pretrain it."""
    words, path = vocabulary(), results.UNFINISHED / f"few_labels_{seed}.pt"
    made, _ = pretraining.read(None, False, words, seed)
    if path.is_file():
        masked = copy.deepcopy(made)
        masked.load_state_dict(torch.load(path))
    else:
        masked, _ = pretraining.read("masked", False, words, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(masked.state_dict(), path)
    if seed == SEEDS[0]:
        save_weights(NAME, masked)
    return {"not pretrained": made, "pretrained": masked}


def tune(way: str, labels: int, rate: float, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Tune a copy of a model and a new head; return the shares right."""
    learned, choosing = split(seed)
    reader = copy.deepcopy(readers(seed)[way])
    with training.seeded(seed):
        model = Classifier(reader, 2)
    tokens, classes = tensors(learned[:labels], vocabulary())
    stream = shuffled(tokens, classes, seed)
    training.train(model, stream, task_loss, steps=steps, learning_rate=rate, seed=seed)
    shares = {}
    with torch.no_grad():
        for name, part in (("choosing", choosing), ("test", testing())):
            tokens, right = tensors(part, vocabulary())
            shares[name] = share_right(model(tokens), right)
    return shares


def labels_of(examples: Sequence[Example]) -> Int[Tensor, " m"]:
    """Return the right answers."""
    return torch.tensor([example.label for example in examples])


def frozen(learned: Vectors, choosing: Vectors, test: Vectors, labels: int) -> dict[str, float]:
    """Fit a linear head to vectors, with the penalty that is best on the choosing ones."""
    x, classes = (part[:labels] for part in learned)

    def right(of: Vectors, penalty: float) -> float:
        return share_right(linear(x, classes, of[0], penalty), of[1])

    best = max(PENALTIES, key=lambda penalty: right(choosing, penalty))
    return {"choosing": right(choosing, best), "test": right(test, best)}


@torch.no_grad()
def states(reader: Reader, examples: Sequence[Example]) -> Float[Tensor, "m d"]:
    """Describe each example by the mean of a model's states."""
    return reader.states(tensors(examples, vocabulary())[0]).mean(-2)


@torch.no_grad()
def hidden_one_by_one(reader: Reader, examples: Sequence[Example]) -> Float[Tensor, "m 1"]:
    """Describe each example by one number: the mean log p of its words, each hidden in turn."""
    found = []
    for rows in tensors(examples, vocabulary())[0].split(50):
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
    scored = tensors(examples, vocabulary())[0][:, first:]
    # the masked model is never asked for an unknown word; counts are
    known = (scored != UNKNOWN) | (first > 0)
    frequencies = (pretraining.log_frequencies(vocabulary())[scored] * known).sum(-1) / known.sum(
        -1
    ).clamp(min=1)
    return x - frequencies.unsqueeze(-1)


@torch.no_grad()
def by_smollm2(examples: Sequence[Example]) -> Float[Tensor, "m 1"]:
    """Describe each example by one number: SmolLM2's mean log p of its tokens after the first."""
    model = smollm2.load()
    found = []
    for example in examples:
        tokens = torch.tensor(model.tokenizer.encode(" ".join(example.words)).ids)
        found.append(-cross_entropy(model(tokens[:-1]), tokens[1:]))
    return torch.stack(found).unsqueeze(-1)


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
        "not pretrained, frozen": lambda x: states(readers(seed)["not pretrained"], x),
        "each word hidden": lambda x: hidden_one_by_one(readers(seed)["pretrained"], x),
        "pairs counted": partial(by_counts, 2, held_out=held_out),
        "three words counted": partial(by_counts, 3, held_out=held_out),
        "MiniLM, frozen": pretraining.sentence_vectors,
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


def measure_smollm2() -> dict[str, float]:
    """Fit a threshold to SmolLM2's loss, with 200 labels of the first seed."""
    learned, few = split(0)[0][:200], testing()[:FEW]
    x = by_smollm2(learned), labels_of(learned)
    test = by_smollm2(few), labels_of(few)
    return frozen(x, x, test, 200)


FROZEN = (
    "pretrained, frozen", "not pretrained, frozen", "each word hidden", "pairs counted",
    "three words counted", "MiniLM, frozen", "each word hidden, corrected",
    "three words counted, corrected",
)  # fmt: skip


def measure() -> dict[str, Any]:
    """Return the shares right: of each tuning by labels, rate and seed, and of the frozen ways."""
    torch.set_num_threads(1)
    start = time.process_time()
    held = {
        name: [once(f"{name} {seed}", partial(measure_frozen, name, seed)) for seed in SEEDS]
        for name in FROZEN
    }
    large = once("SmolLM2", measure_smollm2)
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
    return figures | {"SmolLM2": large, "both sides": filled, "cpu_seconds": spent}


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
    return [*lines, f"SmolLM2, {FEW} tests: {figures['SmolLM2']['test']:.3f}"]
