"""Lesson 16: what does reading first buy? Four small tasks with 500 labels each.

One model reads 28 plays and fills holes, its twin predicts the next word; then both learn the
tasks, beside models that have read nothing, counts of words, and MiniLM, which has read the world.
The tasks are tested on nine plays that none of ours has read. A run that was interrupted goes on
with the first reader that is not measured yet.
"""

import copy
import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import mean
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import characters, plays
from course_lib.data.plays import END, TASKS, Example
from course_lib.instruments import results, training
from course_lib.language_model import cross_entropy
from course_lib.pretrained import minilm
from course_lib.pretrained.play_reader import (
    MASK,
    MODEL,
    SPECIAL,
    STEEP,
    WORDS,
    Reader,
    Vocabulary,
)
from course_lib.pretraining import IGNORED, mask_tokens

LESSON = "16"
SEEDS = (0, 1, 2)

READING: dict[str, Any] = {"steps": 1500, "learning_rate": 3e-3}
TUNING: dict[str, Any] = {"steps": 160}
# for each reader and task, CHECKED further examples from plays that are read choose one, by seed 0
TUNING_RATES, CHECKED = (0.0003, 0.001, 0.003, 0.01), 1000
BATCH, SHARE = 32, 0.15
LABELS, TESTS = 500, 1200  # examples of each task to learn from, and to be tested on
PENALTIES = (0.001, 0.01, 0.1, 1.0)  # on the squares of a linear head's weights
CHOOSING = 100  # of the labels, that choose among them
SETTINGS = {
    "words": WORDS, "model": MODEL, "steep": STEEP, "reading": READING, "tuning": TUNING,
    "tuning_rates": TUNING_RATES, "checked": CHECKED,
    "batch": BATCH, "share": SHARE, "labels": LABELS, "tests": TESTS, "penalties": PENALTIES,
}  # fmt: skip

Objective = Literal["masked", "next"]


class Classifier(nn.Module):
    """A reader and a linear head on the mean of its states."""

    def __init__(self, reader: Reader, classes: int):
        super().__init__()
        self.reader, self.head = reader, nn.Linear(MODEL["d_model"], classes)

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch classes"]:
        """Score the answers."""
        return self.head(self.reader.states(tokens).mean(-2))


def reading_loss(reader: Reader, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy, in nats, of the tokens that are asked for."""
    tokens, targets = batch
    told = targets != IGNORED
    return cross_entropy(reader.output(reader.states(tokens)[told]), targets[told])


def task_loss(model: Classifier, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the labels, in nats."""
    tokens, labels = batch
    return F.cross_entropy(model(tokens), labels)


def asked(
    objective: Objective, text: Int[Tensor, " all"], vocab: int, size: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield stretches of the text without end, and what a reader is to say at each place."""
    stretches = characters.batches(text, MODEL["max_length"], size, seed)
    for step, (tokens, following) in enumerate(stretches):
        if objective == "next":
            yield tokens, following
        else:
            yield mask_tokens(tokens, SHARE, MASK, vocab, (), seed=seed * 1_000_000 + step)


def read(
    objective: Objective | None, causal: bool, vocabulary: Vocabulary, seed: int
) -> tuple[Reader, dict[str, float]]:
    """Make a reader and let it read; return it, its loss on the tested plays, and CPU-seconds."""
    with training.seeded(seed):
        reader = Reader(len(vocabulary), causal)
    if objective is None:
        return reader, {}
    size = len(vocabulary)
    text = vocabulary.encode(plays.texts_to_read())
    start = time.process_time()
    training.train(
        reader, asked(objective, text, size, BATCH, seed), reading_loss, seed=seed, **READING
    )
    spent = time.process_time() - start
    unseen = vocabulary.encode([word for title in plays.TESTED for word in plays.stream(title)])
    with torch.no_grad():
        loss = reading_loss(reader, next(asked(objective, unseen, size, 512, 0))).item()
    return reader, {"loss": round(loss, 4), "cpu_seconds": round(spent, 1)}


def learning(task: str, seed: int) -> list[Example]:
    """Draw the labelled examples of a seed, from plays that are read."""
    return plays.examples(task, plays.READ, LABELS + CHECKED, seed)[:LABELS]


def checking(task: str) -> list[Example]:
    """Draw the examples that choose a rate: those after the labelled ones of seed 0."""
    return plays.examples(task, plays.READ, LABELS + CHECKED, SEEDS[0])[LABELS:]


def testing(task: str) -> list[Example]:
    """Draw the examples of the test, the same for all, from plays that nobody has read."""
    return plays.examples(task, plays.TESTED, TESTS, 0)


def tensors(examples: Sequence[Example], vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Return the tokens (examples, n) and the labels."""
    tokens = torch.stack([vocabulary.encode(example.words) for example in examples])
    return tokens, torch.tensor([example.label for example in examples])


def shuffled(tokens: Tensor, labels: Tensor, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches without end, in a new order for each round through the examples."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(labels), generator=generator).split(BATCH):
            yield tokens[rows], labels[rows]


def share_right(scores: Float[Tensor, "m classes"], labels: Int[Tensor, " m"]) -> float:
    """Return the share of examples whose answer gets the highest score."""
    return round((scores.argmax(-1) == labels).float().mean().item(), 4)


def tuned(
    reader: Reader,
    task: str,
    vocabulary: Vocabulary,
    seed: int,
    rate: float,
    others: Sequence[Example],
) -> float:
    """Train a copy of the reader and a head on a task; return the share right of other examples."""
    tokens, labels = tensors(learning(task, seed), vocabulary)
    with training.seeded(seed):
        model = Classifier(copy.deepcopy(reader), int(labels.max()) + 1)
    batches = shuffled(tokens, labels, seed)
    training.train(model, batches, task_loss, seed=seed, learning_rate=rate, **TUNING)
    unknown, right = tensors(others, vocabulary)
    with torch.no_grad():
        return share_right(model(unknown), right)


def tuning_rates(reader: Reader, vocabulary: Vocabulary) -> dict[str, float]:
    """Return the rate with which a reader of seed 0 tells the checked examples best, by task."""
    found = {}
    for task in TASKS:
        own = partial(tuned, reader, task, vocabulary, SEEDS[0], others=checking(task))
        shares = {rate: own(rate=rate) for rate in TUNING_RATES}
        found[task] = max(shares, key=shares.__getitem__)
        print(task, shares, flush=True)
    return found


def linear(
    x: Float[Tensor, "m d"],
    labels: Int[Tensor, " m"],
    others: Float[Tensor, "k d"],
    penalty: float,
) -> Float[Tensor, "k classes"]:
    """Fit a linear head, and nothing else, to the vectors x; score the others."""
    scale = x.std(0).clamp(min=1e-6)
    x, others = (x - x.mean(0)) / scale, (others - x.mean(0)) / scale
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


def best_penalty(x: Float[Tensor, "m d"], labels: Int[Tensor, " m"]) -> float:
    """Return the penalty with which the other labels tell the last ones best."""
    shares = {
        penalty: share_right(
            linear(x[:-CHOOSING], labels[:-CHOOSING], x[-CHOOSING:], penalty), labels[-CHOOSING:]
        )
        for penalty in PENALTIES
    }
    return max(shares, key=shares.__getitem__)


def frozen(x: Float[Tensor, "m d"], others: Float[Tensor, "k d"], task: str, seed: int) -> float:
    """Fit a linear head to vectors of the learned examples; return the share right of the tested.

    The vectors stay as they are.
    """
    labels, right = (
        torch.tensor([example.label for example in part])
        for part in (learning(task, seed), testing(task))
    )
    return share_right(linear(x, labels, others, best_penalty(x, labels)), right)


@torch.no_grad()
def mean_states(reader: Reader, vocabulary: Vocabulary, examples: Sequence[Example]) -> Tensor:
    """Describe each example by the mean of the reader's states."""
    return reader.states(tensors(examples, vocabulary)[0]).mean(-2)


@functools.cache
def log_frequencies(vocabulary: Vocabulary) -> Float[Tensor, " vocab"]:
    """Return log p of each word by itself, in the plays that are read."""
    often = torch.bincount(vocabulary.encode(plays.texts_to_read()), minlength=len(vocabulary))
    return ((often + 0.5) / (often + 0.5).sum()).log()


@torch.no_grad()
def next_scores(
    reader: Reader, vocabulary: Vocabulary, examples: Sequence[Example]
) -> dict[str, Float[Tensor, "m 1"]]:
    """Describe each example by one number, as the causal reader scores it.

    It is the mean log p of its words after the first, or that above their own log frequencies.
    """
    tokens, _ = tensors(examples, vocabulary)
    scores = reader.output(reader.states(tokens[:, :-1])).log_softmax(-1)
    plain = scores.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)
    alone = log_frequencies(vocabulary)[tokens[:, 1:]]
    return {"plain": plain.mean(-1, keepdim=True), "corrected": (plain - alone).mean(-1, True)}


def counts(vocabulary: Vocabulary, examples: Sequence[Example]) -> Float[Tensor, "m vocab"]:
    """Describe each example by how often it has each word: no order, nothing read before."""
    tokens, _ = tensors(examples, vocabulary)
    return F.one_hot(tokens, len(vocabulary)).sum(1).float()


load_minilm = functools.cache(minilm.load)


@torch.no_grad()
def sentence_vectors(examples: Sequence[Example]) -> Float[Tensor, "m d"]:
    """Describe each example by MiniLM's vector of its words.

    MiniLM reads one text at a time. The two speeches of a question are described by both vectors
    u and v, |u - v| and u v.
    """

    model = load_minilm()

    def embed(texts: Sequence[str]) -> Tensor:
        return torch.cat([model.embed(texts[i : i + 50]) for i in range(0, len(texts), 50)])

    if all(words.count(END) == 1 and words[-1] != END for words, _ in examples):
        halves = zip(*(" ".join(words).split(END) for words, _ in examples), strict=True)
        u, v = (embed(half) for half in halves)
        return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
    return embed([" ".join(word for word in words if word != END) for words, _ in examples])


@functools.cache
def tested_vectors(task: str) -> Float[Tensor, "m d"]:
    """Describe the examples of the test by MiniLM's vectors."""
    return sentence_vectors(testing(task))


def measure_reader(objective: Objective | None, causal: bool, seed: int) -> dict[str, Any]:
    """Let a reader read, if it does, then tune and freeze it on each task."""
    vocabulary = Vocabulary(plays.texts_to_read())
    start = time.process_time()
    reader, reading = read(objective, causal, vocabulary, seed)
    spent = time.process_time() - start
    # seed 0 comes first
    rates = once(f"tuning rates of {objective} {causal}", partial(tuning_rates, reader, vocabulary))
    start = time.process_time()
    run: dict[str, Any] = {
        "reading": reading,
        "rates": rates,
        "tuned": {
            task: tuned(reader, task, vocabulary, seed, rates[task], testing(task))
            for task in TASKS
        },
    }
    if objective:
        vectors = partial(mean_states, reader, vocabulary)
        run["frozen"] = {
            task: frozen(vectors(learning(task, seed)), vectors(testing(task)), task, seed)
            for task in TASKS
        }
    if objective == "next":
        own, others = (
            next_scores(reader, vocabulary, part)
            for part in (learning("order", seed), testing("order"))
        )
        run["score"] = {how: frozen(own[how], others[how], "order", seed) for how in own}
    return run | {"cpu_seconds": round(spent + time.process_time() - start, 1)}


def measure_counts(seed: int) -> dict[str, Any]:
    """Fit a linear head on each task to counts of words."""
    start = time.process_time()
    vectors = partial(counts, Vocabulary(plays.texts_to_read()))
    shares = {
        task: frozen(vectors(learning(task, seed)), vectors(testing(task)), task, seed)
        for task in TASKS
    }
    return {"frozen": shares, "cpu_seconds": round(time.process_time() - start, 1)}


def measure_minilm(seed: int) -> dict[str, Any]:
    """Fit a linear head on each task to MiniLM's vectors; those of the test are made once."""
    start = time.process_time()
    shares = {
        task: frozen(sentence_vectors(learning(task, seed)), tested_vectors(task), task, seed)
        for task in TASKS
    }
    return {"frozen": shares, "cpu_seconds": round(time.process_time() - start, 1)}


READERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "nothing": partial(measure_reader, None, False),
    "nothing, left side": partial(measure_reader, None, True),
    "masked": partial(measure_reader, "masked", False),
    "next": partial(measure_reader, "next", True),
    "counts": measure_counts,
    "MiniLM": measure_minilm,
}
once = partial(results.once, "pretraining", SETTINGS)  # what an ended run has measured is kept


def measure() -> dict[str, Any]:
    """Return the shares right of each way by task and seed, all ways of a seed before the next."""
    torch.set_num_threads(1)
    return summary(
        {
            seed: {
                name: once(f"{name} {seed}", partial(one, seed)) for name, one in READERS.items()
            }
            for seed in SEEDS
        }
    )


def summary(found: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Gather what was found by seed and reader: a list of numbers, one a seed, for each question.

    `found` may have fewer seeds than `SEEDS`, where the others are not measured yet.
    """
    first = next(iter(found.values()))
    shares = {
        f"{name}, {how}": {task: [one[name][how][task] for one in found.values()] for task in TASKS}
        for name in first
        for how in ("tuned", "frozen")
        if how in first[name]
    }
    return {
        "settings": SETTINGS,
        "parameters": sum(p.numel() for p in Reader(WORDS + len(SPECIAL), True).parameters()),
        "words_read": len(plays.texts_to_read()),
        "majority": {task: majority(task) for task in TASKS},
        "shares": shares,
        "reading": {
            name: [one[name]["reading"] for one in found.values()] for name in ("masked", "next")
        },
        # of the task "order"
        "score": [one["next"]["score"] for one in found.values() if "score" in one["next"]],
        "rates": {name: own["rates"] for name, own in first.items() if "rates" in own},
        "cpu_seconds": {
            name: [one[name]["cpu_seconds"] for one in found.values()] for name in first
        },
    }


def majority(task: str) -> float:
    """Return the share of the most frequent label in the test."""
    [(_, most)] = Counter(example.label for example in testing(task)).most_common(1)
    return round(most / TESTS, 4)


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text: a column for each task, a number for each seed."""
    lines = ["".join([f"{'share right, by seed':28}", *(f"{task:22}" for task in TASKS)])]
    for name, by_task in figures["shares"].items():
        shares = (" ".join(f"{share:.3f}" for share in by_task[task]) for task in TASKS)
        lines.append("".join([f"{name:28}", *(f"{one:22}" for one in shares)]))
    base = (f"{figures['majority'][task]:.3f}" for task in TASKS)
    lines.append("".join([f"{'most frequent answer':28}", *(f"{one:22}" for one in base)]))
    for name, seconds in figures["cpu_seconds"].items():
        lines.append(f"{name:28}{mean(seconds):.0f} CPU-seconds for a seed")
    return lines
