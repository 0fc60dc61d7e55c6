"""Lesson 16: what does pretraining bring? Commands in wordings without a label, and few examples.

A head on an encoder that has read much text, MiniLM, learns eleven actions of a smart home from few
labels. The baseline counts words; the ablation is the same encoder with random
parameters, frozen. Held out are commands in known wordings and in new ones; penalties are chosen by
others, in known wordings. SmolLM2 gets a few examples in its prompt, and no training.
"""

import random
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import takewhile
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.data import home_commands
from course_lib.data.home_commands import Command
from course_lib.data.questions import one_word, questions
from course_lib.instruments import intents, results, training
from course_lib.pretrained import minilm, smollm2
from course_lib.pretrained.minilm import MiniLM
from research.experiments.few_labels import linear, share_right

LESSON = "16"
SEEDS = (0, 1, 2)

LABELS = (24, 100, 400)
POOL, HELD_OUT, CHOOSING = 1000, 300, 200
LISTS = ("known", "new wordings")
PENALTIES = (0.00001, 0.0001, 0.001, 0.01)
EXAMPLES = (0, 1, 2, 4, 8)
WRONG = 4  # examples, whose answers are exchanged
LONGEST = 8  # tokens of an answer
LEARNED = 39  # questions that examples are drawn from; the others are asked
SETTINGS = {
    "labels": LABELS, "pool": POOL, "held out": HELD_OUT, "choosing": CHOOSING,
    "penalties": PENALTIES,
    "examples": EXAMPLES, "wrong": WRONG, "longest": LONGEST,
}  # fmt: skip
once = partial(results.once, "pretraining", SETTINGS)  # what an ended run has measured is kept


@cache
def split(seed: int) -> dict[str, list[Command]]:
    """Draw commands to learn from, others that choose, and two lists that are held out."""
    drawn = home_commands.split(POOL, HELD_OUT, seed)
    learning = drawn["learning"]
    return {"learning": learning[:-CHOOSING], "choosing": learning[-CHOOSING:]} | {
        name: drawn[name] for name in LISTS
    }


@cache
def encoder(pretrained: bool = True) -> MiniLM:
    """Load the encoder once; or give it random parameters, as BERT's are at its start."""
    model = minilm.load()
    if not pretrained:
        with training.seeded(0):
            for table in (p for p in model.parameters() if p.dim() > 1):
                nn.init.normal_(table, std=0.02)
    return model


@torch.no_grad()
def in_parts(describe: Callable[[list[str]], Tensor], commands: Sequence[Command]) -> Tensor:
    """Describe commands, fifty at a time."""
    texts = [x.said for x in commands]
    return torch.cat([describe(texts[i : i + 50]) for i in range(0, len(texts), 50)])


def measure_linear(way: str, labelled: int, seed: int) -> dict[str, float]:
    """Fit a linear head to counts or frozen vectors; return the shares right of both lists."""
    lists = split(seed)
    learned = lists["learning"][:labelled]
    describe = {
        "counted words": intents.WithCounts(learned).counts,
        "frozen": encoder().embed,
        "not pretrained": encoder(pretrained=False).embed,
    }[way]
    x, right = in_parts(describe, learned), intents.labels(learned)
    others = {name: in_parts(describe, lists[name]) for name in ("choosing", *LISTS)}

    def share(name: str, penalty: float) -> float:
        return share_right(linear(x, right, others[name], penalty), intents.labels(lists[name]))

    best = max(PENALTIES, key=partial(share, "choosing"))
    return {name: share(name, best) for name in LISTS}


def prompt(examples: Sequence[tuple[str, str]], question: str) -> str:
    """Write examples of questions with their answers, and a question without one."""
    before = "".join(f"Q: {asked}\nA: {answer}\n\n" for asked, answer in examples)
    return f"{before}Q: {question}\nA:"


def measure_examples(count: int, seed: int, exchanged: bool = False) -> dict[str, Any]:
    """Ask each question after so many examples; return the share right in one word, and all told.

    With `exchanged`, each example has the answer of the next one.
    """
    learned, asked = questions()[:LEARNED], questions()[LEARNED:]
    examples = random.Random(seed).sample(learned, count)
    if exchanged:
        answers = [answer for _, answer in examples]
        turned = [*answers[1:], *answers[:1]]
        examples = [(q, answer) for (q, _), answer in zip(examples, turned, strict=True)]
    model, before, told = _causal(), [], []
    score = model.scoring()
    for question, _ in asked:
        tokens = model.tokenizer.encode(prompt(examples, question)).ids
        # what the last prompt had in common with this one is not read again
        known = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, tokens, strict=False))
        )
        before, written = tokens, []
        for _ in range(LONGEST):
            with torch.inference_mode():
                rows = len(tokens) - known if not written else 1
                written.append(int(score([*tokens, *written], rows)[-1].argmax()))
            if "\n" in model.tokenizer.decode(written):
                break
        told.append(model.tokenizer.decode(written).partition("\n")[0].strip())
    right = [one_word(x) == word.casefold() for x, (_, word) in zip(told, asked, strict=True)]
    return {"share": round(mean(right), 4), "told": told}


@cache
def _causal() -> smollm2.SmolLM2:
    return smollm2.load()


def by_labels(way: Any, once: Callable, measured: Callable) -> list[list[dict[str, float]]]:
    """Return what is `measured`, for each number of labels the seeds'."""
    return [
        [once(f"{way} {n} {seed}", partial(measured, way, n, seed)) for seed in SEEDS]
        for n in LABELS
    ]


def measure() -> dict[str, Any]:
    """Return the shares of commands by way, list and number of labels, and those of questions."""
    torch.set_num_threads(1)
    runs = {
        way: by_labels(way, once, measure_linear)
        for way in ("counted words", "frozen", "not pretrained")
    }
    asked = {
        # without examples there is nothing to draw
        str(n): [
            once(f"examples {n} {seed}", partial(measure_examples, n, seed))
            for seed in (SEEDS if n else SEEDS[:1])
        ]
        for n in EXAMPLES
    }
    wrong = [once(f"wrong {seed}", partial(measure_examples, WRONG, seed, True)) for seed in SEEDS]
    return {
        "settings": SETTINGS,
        "intents": {
            way: {name: [[run[name] for run in seeds] for seeds in of] for name in LISTS}
            for way, of in runs.items()
        },
        "examples": asked,
        "wrong examples": wrong,
    }


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text: a number for each seed."""
    lines = [f"{'right, by labels':34}" + "".join(f"{labels:<20}" for labels in LABELS)]
    for way, by_list in figures["intents"].items():
        for name, points in by_list.items():
            cells = (" ".join(f"{share:.3f}" for share in seeds) for seeds in points)
            lines.append(f"{f'{way}, {name}':34}" + "".join(f"{cell:20}" for cell in cells))
    for count, runs in figures["examples"].items():
        shares = " ".join(f"{run['share']:.3f}" for run in runs)
        lines.append(f"{f'{count} examples in the prompt':34}{shares}")
    wrong = " ".join(f"{run['share']:.3f}" for run in figures["wrong examples"])
    return [*lines, f"{f'{WRONG} examples, answers exchanged':34}{wrong}"]
