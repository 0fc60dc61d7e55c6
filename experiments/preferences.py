"""Lesson 17: SmolLM2 learns to prefer short answers, by DPO and by its rivals.

The pairs are two answers of its own to a question, both ended by itself, and a program prefers the
shorter one. What that costs is seen on questions that no pair is about: is the right word still
said? A model whose weights are only disturbed shows what a low loss on other pairs is worth.
"""

import copy
import random
import time
from collections.abc import Iterator, Sequence
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
    BLOCKS,
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

PAIRS, BETA, STEPS = 2, 0.1, 40
ALONE, BOTH, EACH = "better answers alone", "DPO and better answers", "DPO, by the token"
# a loss by the token compares numbers that are some 25 times as small
RATES = {
    "DPO": (0.0001, 0.0003, 0.001),
    ALONE: (0.0003, 0.001, 0.003),
    BOTH: (0.001,),
    EACH: (0.001,),
}
BETA_EACH = 2.5
DISTURBED = 5.0  # nats of plain sentences' tokens
DRAWS, LONGEST = 4, 60  # of answers to a question, and of tokens in one
CUT = 40  # tokens of an answer that is measured
ASK = " Answer in one word."
SETTINGS = {
    "pairs": PAIRS, "beta": BETA, "steps": STEPS, "draws": DRAWS, "longest": LONGEST, "cut": CUT,
    "beta by the token": BETA_EACH, "disturbed": DISTURBED,
}  # fmt: skip
once = partial(results.once, "preferences", SETTINGS)


def sampled(question: str, seed: int) -> str | None:
    """Answer a question by drawing each token from the model's own distribution, up to its end."""
    model = base()
    tokens = model.tokenizer.encode(prompt(question)).ids
    start, score = len(tokens), model.scoring()
    draw = torch.Generator().manual_seed(seed)
    while len(tokens) < start + LONGEST:
        with torch.inference_mode():
            chances = score(tokens, 1)[0].softmax(-1)
        token = int(torch.multinomial(chances, 1, generator=draw))
        if token == smollm2.STOP:
            return model.tokenizer.decode(tokens[start:])
        tokens.append(token)
    return None


def length(answer: str) -> int:
    """Count the tokens of an answer."""
    return len(base().tokenizer.encode(answer).ids)


def sizes(some: Sequence[Preference]) -> Tensor:
    """Count the tokens of the better answers, and of the worse ones, each with its end."""
    return torch.tensor([[length(text) + 1 for text in pair[1:]] for pair in some]).T


def by_length(asked: Sequence[tuple[str, str]], seed: int) -> list[Preference]:
    """Draw answers to each question, and prefer the shorter one of two that differ in length."""
    found = []
    for i, (question, _) in enumerate(asked):
        drawn = (sampled(question, seed + DRAWS * i + k) for k in range(DRAWS))
        by_size = {length(text): text for text in drawn if text}
        if len(by_size) > 1:
            found.append((question, by_size[min(by_size)], by_size[max(by_size)]))
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


def gains(model: SmolLM2, some: list[Preference]) -> dict[str, Any]:
    """Say how much likelier answers have become, in nats, and the loss; means over the pairs."""
    now, then = (
        torch.tensor(x).T for x in (all_log_probs(model, some), [before()[x] for x in some])
    )
    chosen, rejected = now - then
    by_token = ((now - then) / sizes(some)).mean(-1)
    return {
        "chosen": chosen.mean().item(),
        "rejected": rejected.mean().item(),
        "by the token": by_token.tolist(),
        "preferred": (chosen > rejected).float().mean().item(),
        "loss": preference_loss(now[0], now[1], then[0], then[1], BETA).item(),
    }


def told(model: SmolLM2, ask: str = "") -> dict[str, Any]:
    """Answer the questions that were not learned; measure length, and what is right."""
    said = answers(model, [question + ask for question, _ in TESTED], CUT)
    right = [is_right(text, word) for text, (_, word) in zip(said, TESTED, strict=True)]
    return {
        "length": sum(map(length, said)) / len(said),
        "right": sum(right) / len(right),
        "empty": sum(not text.strip() for text in said) / len(said),
        "answers": said[:10],
    }


def loss_of(way: str, model: SmolLM2, batch: list[Preference]) -> Tensor:
    """Return what a way of training makes small, on a batch of pairs."""
    if way == ALONE:
        rows = [(prompt(question), good) for question, good, _ in batch]
        return loss(model, conversations(model.tokenizer, rows))
    now = torch.stack(log_probs(model, batch))
    then = torch.tensor([before()[x] for x in batch]).T
    if way == EACH:
        now, then, beta = now / sizes(batch), then / sizes(batch), BETA_EACH
    else:
        beta = BETA
    preferred = preference_loss(now[0], now[1], then[0], then[1], beta)
    return preferred - (now[0] / sizes(batch)[0]).mean() if way == BOTH else preferred


def tuned(way: str, rate: float, seed: int) -> dict[str, Any]:
    """Train in one way, and measure."""
    model, start = with_lora(copy.deepcopy(base()), seed), time.process_time()
    draw = random.Random(seed)
    batches = (draw.sample(preferences(), PAIRS) for _ in range(STEPS))
    training.train(
        model, batches, partial(loss_of, way), steps=STEPS, learning_rate=rate, seed=seed
    )
    return {"cpu_seconds": round(time.process_time() - start, 1), **measured(model)}


def disturbed(seed: int) -> dict[str, Any]:
    """Make the same weights as wrong by chance as plain sentences tell, and measure."""
    model = copy.deepcopy(base())
    with training.seeded(seed):
        changes = [
            (p, p.clone(), p.std() * torch.randn_like(p))
            for block in model.blocks[-BLOCKS:] for p in block.parameters() if p.dim() == 2
        ]  # fmt: skip

    @torch.no_grad()
    def loss_at(size: float) -> float:
        for p, was, change in changes:
            p.copy_(was + size * change)
        return plain_loss(model)

    low, high = 0.0, 1.0
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if loss_at(middle) < DISTURBED else (low, middle)
    loss_at(low)
    return measured(model)


def measured(model: SmolLM2) -> dict[str, Any]:
    """Measure what the model prefers, and what it answers."""
    return {
        "plain loss": plain_loss(model),
        "learned": gains(model, preferences()),
        "held out": gains(model, held_out()),
        **told(model),
    }


def measure() -> dict[str, Any]:
    """Measure the model as it came, asked for one word, and after each way of training."""
    return {
        "settings": SETTINGS,
        "pairs": [list(x) for x in preferences()],
        "held out": [list(x) for x in held_out()],
        "before": once("before", lambda: {"plain loss": plain_loss(base()), **told(base())}),
        "asked for one word": once("one word", lambda: told(base(), ASK)),
        "ways": {
            way: {
                str(rate): [
                    once(f"{way} {rate} {seed}", partial(tuned, way, rate, seed)) for seed in SEEDS
                ]
                for rate in rates
            }
            for way, rates in RATES.items()
        },
        "disturbed": [once(f"disturbed {seed}", partial(disturbed, seed)) for seed in SEEDS],
    }


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Yield lengths and right answers of each seed, and losses."""
    for name in ("before", "asked for one word"):
        yield f"{name:28}{figures[name]['length']:6.1f}{figures[name]['right']:8.0%}"
    for way, rates in [*figures["ways"].items(), ("disturbed", {"": figures["disturbed"]})]:
        for rate, runs in rates.items():
            lengths, right = ([x[name] for x in runs] for name in ("length", "right"))
            yield f"{way}, {rate}".ljust(28) + " ".join(
                f"{a:6.1f}{b:8.0%}" for a, b in zip(lengths, right, strict=True)
            )
            for pairs in ("learned", "held out"):
                for name in ("loss", "preferred", "chosen", "rejected"):
                    found = (x[pairs][name] for x in runs)
                    yield f"    {pairs}, {name}: " + " ".join(f"{x:.3f}" for x in found)
