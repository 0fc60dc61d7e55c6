"""Lesson 17: SmolLM2 learns to prefer short answers, by DPO and by its rivals.

The pairs are two answers of its own to a question, and a program prefers the shorter one. What that
costs is seen on questions that no pair is about: is the right word still said? Four times as many
steps show where it ends.
"""

import copy
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from course_lib.assistant import answer_targets
from course_lib.data.questions import is_right
from course_lib.dpo import answer_log_probs, preference_loss
from course_lib.instruments import results, training
from course_lib.pretrained import smollm2
from course_lib.pretrained.smollm2 import SmolLM2, conversations
from experiments.assistant import (
    LEARNED,
    TESTED,
    answers,
    base,
    loss,
    plain_loss,
    prompt,
    with_lora,
)

LESSON = "17"
SEEDS = (0, 1, 2)

Preference = tuple[str, str, str]  # a question, the better answer, the worse one

PAIRS, BETA, RATE, STEPS, LONGEST = 2, 0.1, 0.001, 40, 40
HELD_OUT = 15  # pairs by which the way is followed
WAYS = ("DPO", "better answers alone")
LONGER = 4  # times as many steps, on two seeds
ASK = " Answer in one word."
SETTINGS = {
    "pairs": PAIRS, "beta": BETA, "rate": RATE, "steps": STEPS, "longest": LONGEST,
    "longer": LONGER,
}  # fmt: skip
once = partial(results.once, "preferences", SETTINGS)


def sampled(question: str, seed: int) -> str:
    """Answer a question by drawing each token from the model's own distribution."""
    model = base()
    tokens = model.tokenizer.encode(prompt(question)).ids
    start, score = len(tokens), model.scoring()
    draw = torch.Generator().manual_seed(seed)
    while len(tokens) < start + LONGEST:
        with torch.inference_mode():
            chances = score(tokens, 1)[0].softmax(-1)
        token = int(torch.multinomial(chances, 1, generator=draw))
        if token == smollm2.STOP:
            break
        tokens.append(token)
    return model.tokenizer.decode(tokens[start:])


def length(answer: str) -> int:
    """Count the tokens of an answer."""
    return len(base().tokenizer.encode(answer).ids)


def by_length(asked: Sequence[tuple[str, str]], seed: int) -> list[Preference]:
    """Draw two answers to each question, and prefer the shorter one; equal ones are left out."""
    found = []
    for i, (question, _) in enumerate(asked):
        short, long = sorted((sampled(question, seed + 2 * i + k) for k in (0, 1)), key=length)
        if length(short) < length(long):
            found.append((question, short, long))
    return found


@cache
def preferences() -> list[Preference]:
    """Return the pairs to learn from."""
    return [(q, a, b) for q, a, b in once("pairs", lambda: by_length(LEARNED, 0))]


@cache
def held_out() -> list[Preference]:
    """Return pairs of questions that are not learned."""
    return [(q, a, b) for q, a, b in once("held out", lambda: by_length(TESTED, 1000))]


def log_probs(model: SmolLM2, some: Sequence[Preference]) -> tuple[Tensor, Tensor]:
    """Return log p of the better answers, and of the worse ones."""
    rows = [(prompt(q), good) for q, good, _ in some] + [(prompt(q), bad) for q, _, bad in some]
    tokens, asked, lengths = conversations(model.tokenizer, rows)
    targets = answer_targets(tokens, asked, lengths)
    # no place before the first answer has a target
    first = int(asked.min()) - 1
    scores = model.scores(model.states(tokens)[:, first:])
    chosen, rejected = answer_log_probs(scores, targets[:, first:]).chunk(2)
    return chosen, rejected


@torch.no_grad()
def all_log_probs(model: SmolLM2, some: Sequence[Preference]) -> list[tuple[float, float]]:
    """Return log p of both answers of each pair."""
    found = (log_probs(model, [x]) for x in some)
    return [(chosen.item(), rejected.item()) for chosen, rejected in found]


@cache
def before() -> dict[Preference, tuple[float, float]]:
    """Return log p of all answers under the model as it came."""
    every = preferences() + held_out()
    kept = once("log p", lambda: all_log_probs(base(), every))
    return {x: (chosen, rejected) for x, (chosen, rejected) in zip(every, kept, strict=True)}


def gains(model: SmolLM2) -> dict[str, float]:
    """Say how much likelier the held-out answers have become, in nats; the mean over the pairs."""
    some = held_out()[:HELD_OUT]
    now, then = all_log_probs(model, some), [before()[x] for x in some]
    pairs = [(a - c, b - d) for (a, b), (c, d) in zip(now, then, strict=True)]
    return {
        "chosen": sum(a for a, _ in pairs) / len(pairs),
        "rejected": sum(b for _, b in pairs) / len(pairs),
        "preferred": sum(a > b for a, b in pairs) / len(pairs),
    }


def told(model: SmolLM2, ask: str = "") -> dict[str, Any]:
    """Answer the questions that were not learned; measure length, and what is right."""
    said = answers(model, [question + ask for question, _ in TESTED], LONGEST)
    right = [is_right(text, word) for text, (_, word) in zip(said, TESTED, strict=True)]
    return {
        "length": sum(map(length, said)) / len(said),
        "right": sum(right) / len(right),
        "empty": sum(not text.strip() for text in said) / len(said),
        "answers": said[:10],
    }


def train(
    model: SmolLM2, way: str, seed: int, steps: int, follow: Callable[[], object] = lambda: None
) -> float:
    """Train by preferences, or on the better answers alone; return the processor's seconds."""
    draw, start = random.Random(seed), time.process_time()

    def stream() -> Iterator[list[Preference]]:
        for step in range(steps):
            if step and step % STEPS == 0:
                follow()
            yield draw.sample(preferences(), PAIRS)

    def preferred(model: SmolLM2, batch: list[Preference]) -> Tensor:
        chosen_before, rejected_before = torch.tensor([before()[x] for x in batch]).T
        return preference_loss(*log_probs(model, batch), chosen_before, rejected_before, BETA)

    def likelier(model: SmolLM2, batch: list[Preference]) -> Tensor:
        rows = [(prompt(question), good) for question, good, _ in batch]
        return loss(model, conversations(model.tokenizer, rows))

    training.train(
        model, stream(), preferred if way == "DPO" else likelier,
        steps=steps, learning_rate=RATE, seed=seed,
    )  # fmt: skip
    return round(time.process_time() - start, 1)


def tuned(way: str, seed: int) -> dict[str, Any]:
    """Train in one way, and measure."""
    model = with_lora(copy.deepcopy(base()), seed)
    taken = train(model, way, seed, STEPS)
    return {"cpu_seconds": taken, "plain loss": plain_loss(model), **told(model)}


def longer(way: str, seed: int) -> list[dict[str, Any]]:
    """Train longer; measure after every forty steps."""
    model, course = with_lora(copy.deepcopy(base()), seed), []

    def follow() -> None:
        course.append(told(model) | gains(model))

    train(model, way, seed, LONGER * STEPS, follow)
    follow()
    return course


def measure() -> dict[str, Any]:
    """Measure the model as it came, asked for one word, and after each way of training."""
    figures: dict[str, Any] = {
        "settings": SETTINGS,
        "pairs": [list(x) for x in preferences()],
        "held out": [list(x) for x in held_out()[:HELD_OUT]],
        "before": once("before", lambda: {"plain loss": plain_loss(base()), **told(base())}),
        "asked for one word": once("one word", lambda: told(base(), ASK)),
        "ways": {
            way: [once(f"{way} {seed}", partial(tuned, way, seed)) for seed in SEEDS]
            for way in WAYS
        },
        "longer": {
            way: [once(f"longer {way} {seed}", partial(longer, way, seed)) for seed in SEEDS[:2]]
            for way in WAYS
        },
    }
    return figures


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Yield lengths, right answers, and how much likelier the held-out answers became."""
    names = ("length", "right", "empty", "plain loss")
    yield f"{'':32}" + "".join(f"{name:>11}" for name in names)
    rows = {name: [figures[name]] for name in ("before", "asked for one word")} | figures["ways"]
    for way, runs in rows.items():
        means = [sum(x[n] for x in runs) / len(runs) if n in runs[0] else None for n in names]
        yield f"{way:32}" + "".join(f"{'':>11}" if x is None else f"{x:11.3f}" for x in means)
    for way, runs in figures["longer"].items():
        for name in ("length", "right", "empty", "chosen", "rejected"):
            quarters = zip(*([x[name] for x in run] for run in runs), strict=True)
            yield f"{way}, longer, {name}: " + " ".join(f"{sum(x) / len(x):.2f}" for x in quarters)
