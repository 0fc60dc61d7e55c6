"""Lesson 17: SmolLM2 learns to turn sentences into commands, by LoRA and by its rivals.

A way of training sees 480 commands, or four times as many. A held-out command is right if the line
of JSON is, to the last character. What was forgotten is measured on general questions and on plain
sentences. The rates of learning are compared on the first seed.
"""

import copy
import json
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.assistant import answer_targets
from course_lib.data import home_assistant, home_commands
from course_lib.data.home_commands import Command
from course_lib.data.questions import is_right, questions
from course_lib.instruments import results, training
from course_lib.lora import LowRankLinear, adapt
from course_lib.pretrained import smollm2
from course_lib.pretrained.smollm2 import SmolLM2, conversations, turns
from course_lib.pretraining import masked_loss

LESSON = "17"
SEEDS = (0, 1, 2)

LEARNING, HELD_OUT = 2000, 30  # of each list
BATCH, RANK, ALPHA, BLOCKS = 4, 8, 16, 10
NAMES = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")
SETTINGS = {
    "learning": LEARNING, "held out": HELD_OUT, "batch": BATCH,
    "rank": RANK, "alpha": ALPHA, "blocks": BLOCKS, "names": NAMES,
}  # fmt: skip
once = partial(results.once, "assistant", SETTINGS)  # what an ended run has measured is kept


class Way(NamedTuple):
    """How a copy of the model is trained: by LoRA, or the last block whole."""

    rate: float
    steps: int = 120
    mixed: int = 0  # of the rows of a batch, so many are general questions
    whole: bool = False


WAYS = {
    "LoRA": Way(0.002),
    "LoRA, mixed": Way(0.002, mixed=1),
    "last block": Way(0.001, whole=True),
}
LONGER = Way(0.002, steps=480)  # about as many commands as the rivals see; on the first seed
SEEN = BATCH * WAYS["LoRA"].steps  # commands in a training
RATES = {"LoRA": (0.0005, 0.001, 0.002, 0.005), "last block": (0.0003, 0.001, 0.003)}

Batch = tuple[Tensor, Tensor, Tensor]


def prompt(said: str, before: Sequence[tuple[str, str]] = ()) -> str:
    """Return a sentence in the form of talk, without a system turn."""
    return turns(said, system=None, before=before)


def loss(model: SmolLM2, batch: Batch) -> Tensor:
    """Return the mean loss of the answers' tokens, in nats."""
    states = model.states(batch[0])
    return masked_loss(states, model.words.weight, answer_targets(*batch))


@torch.no_grad()
def exact(model: SmolLM2, pairs: Sequence[tuple[str, str]], rows: int = 10) -> list[bool]:
    """Say of each answer whether the model, by its likeliest tokens, writes it to the last one."""
    found = []
    for i in range(0, len(pairs), rows):
        tokens, asked, lengths = conversations(model.tokenizer, pairs[i : i + rows])
        targets = answer_targets(tokens, asked, lengths)
        wanted = targets >= 0
        right = torch.ones_like(wanted)
        likeliest = model.scores(model.states(tokens)[wanted]).argmax(-1)
        right[wanted] = likeliest == targets[wanted]
        found += right.all(-1).tolist()
    return found


def commands(seed: int) -> dict[str, list[Command]]:
    """Draw the commands of a seed: to learn from, and four lists that are held out."""
    return home_commands.split(LEARNING, HELD_OUT, seed)


def pairs(some: Sequence[Command]) -> list[tuple[str, str]]:
    """Return the prompts of commands, and what is to be answered."""
    return [(prompt(x.said), x.means) for x in some]


@cache
def base() -> SmolLM2:
    """Load the model once; ways of training take copies."""
    return smollm2.load()


def with_lora(model: SmolLM2, seed: int) -> SmolLM2:
    """Put low-rank updates into a model's last blocks; the rest is frozen."""
    model.requires_grad_(False)
    with training.seeded(seed):
        adapt(model.blocks[-BLOCKS:], NAMES, lambda x: LowRankLinear(x, RANK, ALPHA))
    return model


def with_last_block(model: SmolLM2) -> SmolLM2:
    """Freeze all of a model but its last block."""
    model.requires_grad_(False).blocks[-1].requires_grad_(True)
    return model


@cache
def own_answers() -> list[tuple[str, str]]:
    """Return prompts of general questions, and what the model answers before any training."""
    asked = [question for question, _ in LEARNED]
    kept = once("own answers", lambda: answers(base(), asked))
    return [(prompt(q), said) for q, said in zip(asked, kept, strict=True)]


def batches(learning: Sequence[Command], seed: int, mixed: int = 0) -> Iterator[Batch]:
    """Yield batches of commands for ever, in each `mixed` general questions with own answers."""
    draw = random.Random(seed)
    while True:
        rows = pairs(draw.sample(learning, BATCH - mixed))
        rows += draw.sample(own_answers(), mixed) if mixed else []
        yield conversations(base().tokenizer, rows)


def trained(model: nn.Module) -> int:
    """Count the numbers that are trained."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def shares(model: SmolLM2, seed: int) -> dict[str, float]:
    """Return the share of each held-out list that is right."""
    held_out = commands(seed)
    return {
        name: sum(exact(model, pairs(held_out[name]))) / HELD_OUT for name in home_commands.LISTS
    }


# --- what was forgotten


@cache
def plain_text() -> list[str]:
    """Return 40 English sentences of the home's pages that are no commands."""
    long = {x for x in home_assistant.strings("en").values() if 25 <= len(x.split()) <= 40}
    clean = sorted(x for x in long if not re.search(r"[{}\[\]<>*`\n]|https?:", x))
    return random.Random(0).sample(clean, 40)


@torch.no_grad()
def plain_loss(model: SmolLM2) -> float:
    """Return the mean loss of plain sentences' tokens, in nats."""
    total, count = 0.0, 0
    for i in range(0, len(plain_text()), 10):
        rows = conversations(model.tokenizer, [("", x) for x in plain_text()[i : i + 10]])
        tokens, _, lengths = rows
        targets = answer_targets(tokens, torch.ones_like(lengths), lengths - 1)
        wanted = targets >= 0
        scores = model.scores(model.states(tokens)[wanted])
        total += F.cross_entropy(scores, targets[wanted], reduction="sum").item()
        count += int(wanted.sum())
    return total / count


def answers(model: SmolLM2, some: Sequence[str], longest: int = 25) -> list[str]:
    """Answer questions, always by the likeliest token."""
    return ["".join(model.write(prompt(question), longest)) for question in some]


ASKED = questions()
LEARNED, TESTED = ASKED[:39], ASKED[39:]  # of general questions


def forgotten(model: SmolLM2) -> dict[str, Any]:
    """Measure what the model still knows: general questions, and plain sentences."""
    told = answers(model, [question for question, _ in TESTED])
    right = [is_right(text, word) for text, (_, word) in zip(told, TESTED, strict=True)]
    return {
        "plain loss": plain_loss(model),
        "right": sum(right) / len(right),
        "commands": sum("{" in text for text in told) / len(told),
        "answers": told[:8],
    }


# --- rivals that train nothing


def words(said: str) -> set[str]:
    """Return the words of a sentence."""
    return set(re.findall(r"\w+", said))


def nearest(said: str, learning: Sequence[Command], count: int) -> list[Command]:
    """Return the learned commands that share most words with a sentence, the nearest last."""
    own = words(said)
    ranked = sorted(
        learning, key=lambda x: len(own & words(x.said)) / len(own | words(x.said)), reverse=True
    )
    return ranked[:count][::-1]


def in_context(model: SmolLM2, some: Sequence[Command], learning: Sequence[Command]) -> list[bool]:
    """Answer each command after eight turns with the nearest learned ones."""
    asked = []
    for x in some:
        before = [(y.said, y.means) for y in nearest(x.said, learning, 8)]
        asked.append((prompt(x.said, before), x.means))
    return exact(model, asked, rows=2)


def counted(learning: Sequence[Command]) -> Callable[[str], str]:
    """Return a program that counts: words for the action, and lists of devices for the target."""
    actions, seen = Counter(), {}
    things = {json.loads(x.means)["target"].split()[-1] for x in learning}
    for x in learning:
        meant = json.loads(x.means)
        action = meant["action"] + (" to" if "value" in meant else "")
        actions[action] += 1
        seen.setdefault(action, Counter()).update(words(x.said))
    known = {word for counts in seen.values() for word in counts}

    def answer(said: str) -> str:
        own, spoken = words(said), re.findall(r"\w+", said)
        # a device of the list, or else the first word that no learned sentence has
        thing = next((x for x in spoken if x in things), "")
        thing = thing or next((x for x in spoken if x not in known), "")
        room = re.search(rf"{thing} in the ((?:\w+ (?:room|wing|floor))|\w+)", said)
        room = room or re.search(rf"((?:\w+ (?:room|wing|floor))|\w+) {thing}", said)
        value = re.search(r"\d+", said)

        def score(action: str) -> float:
            total = actions[action]
            logs = (seen[action][w] + 0.1 for w in own & known)
            return sum(torch.tensor(x / total).log().item() for x in logs)

        fits = [x for x in actions if x.endswith(" to") == bool(value)]
        action = max(fits, key=score)
        target = f"{room[1] if room else ''} {thing}".strip()
        return home_commands.command(
            action.removesuffix(" to"), target, int(value[0]) if value else None
        )

    return answer


def by_program(seed: int, learning: int = LEARNING) -> dict[str, float]:
    """Return the shares that counting so many commands has right."""
    drawn = commands(seed)
    answer = counted(drawn["learning"][:learning])
    return {
        name: sum(answer(x.said) == x.means for x in drawn[name]) / HELD_OUT
        for name in home_commands.LISTS
    }


def by_examples(seed: int) -> dict[str, float]:
    """Return the shares that the model has right after eight similar commands in its prompt."""
    drawn = commands(seed)
    return {
        name: sum(in_context(base(), drawn[name], drawn["learning"])) / HELD_OUT
        for name in home_commands.LISTS
    }


def prepared(model: SmolLM2, way: Way, seed: int) -> SmolLM2:
    """Choose what a model trains."""
    return with_last_block(model) if way.whole else with_lora(model, seed)


def train(model: SmolLM2, way: Way, seed: int) -> None:
    """Train a prepared model in one way."""
    stream = batches(commands(seed)["learning"], seed, way.mixed)
    training.train(model, stream, loss, steps=way.steps, learning_rate=way.rate, seed=seed)


def tuned(way: Way, seed: int) -> dict[str, Any]:
    """Train in one way, and measure."""
    model = prepared(copy.deepcopy(base()), way, seed)
    start = time.process_time()
    train(model, way, seed)
    return {
        "cpu_seconds": round(time.process_time() - start, 1),
        "trained": trained(model),
        "shares": shares(model, seed),
        "after": forgotten(model),
    }


def kept(way: Way, seed: int) -> dict[str, Any]:
    """Train in one way, and measure, unless that is done."""
    return once(f"{tuple(way)} {seed}", partial(tuned, way, seed))


def begun(model: SmolLM2) -> float:
    """Return the share of right words where the answer is begun for the model."""
    right = []
    for question, word in TESTED:
        if form := re.fullmatch(r"What is the (capital|opposite) of (.+)\?", question):
            start = f"The {form[1]} of {form[2]} is"
            right.append(is_right("".join(model.write(prompt(question) + start, 8)), word))
    return sum(right) / len(right)


def looked_into(seed: int) -> dict[str, Any]:
    """Train by LoRA: are rooms wrong by a blank, and are facts gone, or the form of answers?"""
    model, some = prepared(copy.deepcopy(base()), WAYS["LoRA"], seed), commands(seed)["new rooms"]
    train(model, WAYS["LoRA"], seed)
    written = answers(model, [x.said for x in some], 40)
    wanted = [x.means for x in some]
    solid = [[re.sub(r"\s", "", text) for text in texts] for texts in (written, wanted)]
    return {
        "right": sum(map(str.__eq__, written, wanted)) / HELD_OUT,
        "right but for blanks": sum(map(str.__eq__, *solid)) / HELD_OUT,
        "begun": begun(model),
        "written": written,
    }


# --- memory


def peak(way: Way | None) -> float:
    """Return the most memory of a process that takes three steps, in MB; all is trained by None."""
    import resource  # which Windows does not have

    torch.set_num_threads(1)
    model = prepared(base(), way, 0) if way else base().requires_grad_(True)
    train(model, (way or Way(1e-5))._replace(steps=3), 0)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def apart(way: Way | None) -> float:
    """Measure `peak` in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(peak, (way,))


def measure() -> dict[str, Any]:
    """Measure the ways on each seed."""
    untrained = {
        "before": partial(shares, base()), "in context": by_examples, "counting": by_program,
        f"counting, {SEEN}": partial(by_program, learning=SEEN),
    }  # fmt: skip
    figures: dict[str, Any] = {
        "settings": SETTINGS,
        "before": once("before", lambda: forgotten(base())),
        "shares": {
            name: [once(f"{name} {seed}", partial(way, seed)) for seed in SEEDS]
            for name, way in untrained.items()
        },
        "ways": {name: [kept(way, seed) for seed in SEEDS] for name, way in WAYS.items()},
        "rates": {
            name: {rate: kept(WAYS[name]._replace(rate=rate), SEEDS[0])["shares"] for rate in rates}
            for name, rates in RATES.items()
        },
        "longer": kept(LONGER, SEEDS[0]),
        "begun before": once("begun", lambda: begun(base())),
        "looked into": [once(f"looked {seed}", partial(looked_into, seed)) for seed in SEEDS],
        "memory": {
            name: once(f"memory {name}", partial(apart, way))
            for name, way in [*((x, WAYS[x]) for x in RATES), ("everything", None)]
        },
    }
    figures["shares"] |= {
        name: [run["shares"] for run in runs] for name, runs in figures["ways"].items()
    }
    return figures


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the shares of right commands, and what was forgotten."""
    yield f"{'right, mean of seeds':26}" + "".join(f"{x:>14}" for x in home_commands.LISTS)
    for way, runs in figures["shares"].items():
        means = (sum(run[x] for run in runs) / len(runs) for x in home_commands.LISTS)
        yield f"{way:26}" + "".join(f"{x:14.1%}" for x in means)
    for name, rates in figures["rates"].items():
        for rate, run in rates.items():
            yield f"{name}, {rate}".ljust(26) + "".join(
                f"{run[x]:14.1%}" for x in home_commands.LISTS
            )
    run = figures["longer"]["shares"]
    yield f"{'LoRA, 480 steps':26}" + "".join(f"{run[x]:14.1%}" for x in home_commands.LISTS)
    yield f"answers begun for it, before: {figures['begun before']:.1%}"
    for run in figures["looked into"]:
        names = ("right", "right but for blanks", "begun")
        yield "LoRA on new rooms, and begun: " + ", ".join(f"{x} {run[x]:.1%}" for x in names)
    for name, megabytes in figures["memory"].items():
        yield f"memory, {name}: {megabytes:,.0f} MB"
    yield f"{'':26}{'plain loss':>14}{'right':>14}{'commands':>14}"
    rows = {"before": [figures["before"]]}
    rows |= {way: [run["after"] for run in runs] for way, runs in figures["ways"].items()}
    for way, runs in rows.items():
        means = [sum(x[k] for x in runs) / len(runs) for k in ("plain loss", "right", "commands")]
        yield f"{way:26}{means[0]:14.3f}{means[1]:14.1%}{means[2]:14.1%}"
