"""Lesson 17: SmolLM2 learns to turn sentences into commands, by LoRA and by its rivals.

Each way of training sees the same 4 x 120 commands. A held-out command is right if the line of
JSON is, to the last character. What was forgotten is measured on general questions and on plain
sentences. The first seed's matrices are small enough to be kept.
"""

import copy
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

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

LEARNING, HELD_OUT, BATCH, STEPS = 2000, 60, 4, 120
RANK, ALPHA, NAMES, BLOCKS = 8, 16, ("w_q", "w_v"), 10
RATES = {"LoRA": (0.001, 0.003), "last block": (0.0001, 0.0003)}
SETTINGS = {
    "learning": LEARNING, "held out": HELD_OUT, "batch": BATCH, "steps": STEPS, "rank": RANK,
    "alpha": ALPHA, "names": NAMES, "blocks": BLOCKS,
}  # fmt: skip
once = partial(results.once, "assistant", SETTINGS)  # what an ended run has measured is kept

Batch = tuple[Tensor, Tensor, Tensor]


def prompt(said: str, before: Sequence[tuple[str, str]] = ()) -> str:
    """Return a sentence in the form of talk, without a system turn."""
    return turns(said, system=None, before=before)


def loss(model: SmolLM2, batch: Batch) -> Tensor:
    """Return the mean loss of the answers' tokens, in nats."""
    states = model.states(batch[0])
    return masked_loss(states, model.words.weight, answer_targets(*batch))


def loss_of_all(model: SmolLM2, batch: Batch) -> Tensor:
    """Return the mean loss of all tokens, those of the question too."""
    tokens, _, lengths = batch
    return masked_loss(
        model.states(tokens),
        model.words.weight,
        answer_targets(tokens, torch.ones_like(lengths), lengths),
    )


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


def batches(
    model: SmolLM2, pairs: Sequence[tuple[str, str]], seed: int, size: int = BATCH
) -> Iterator[Batch]:
    """Yield batches of prompts and answers, drawn at random, for ever."""
    draw = random.Random(seed)
    while True:
        yield conversations(model.tokenizer, draw.sample(pairs, size))


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


def with_lora(seed: int, rank: int = RANK, blocks: int = BLOCKS) -> SmolLM2:
    """Return a copy of the model with low-rank updates in its last blocks."""
    model = copy.deepcopy(base()).requires_grad_(False)
    with training.seeded(seed):
        adapt(model.blocks[-blocks:], NAMES, lambda x: LowRankLinear(x, rank, ALPHA))
    return model


def with_last_block() -> SmolLM2:
    """Return a copy of the model of which the last block alone is trained, whole."""
    model = copy.deepcopy(base()).requires_grad_(False)
    model.blocks[-1].requires_grad_(True)
    return model


def train(
    model: SmolLM2,
    some: Sequence[tuple[str, str]],
    rate: float,
    seed: int,
    of: Callable[[SmolLM2, Batch], Tensor] = loss,
    steps: int = STEPS,
) -> float:
    """Train in place; return the seconds of processor time."""
    start = time.process_time()
    training.train(
        model, batches(model, some, seed), of, steps=steps, learning_rate=rate, seed=seed
    )
    return time.process_time() - start


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
    """Return 100 English sentences of the home's pages that are no commands."""
    long = {x for x in home_assistant.strings("en").values() if 25 <= len(x.split()) <= 40}
    clean = sorted(x for x in long if not re.search(r"[{}\[\]<>*`\n]|https?:", x))
    return random.Random(0).sample(clean, 100)


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


def answers(model: SmolLM2, some: Sequence[str], longest: int = 30) -> list[str]:
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
        "answers": told[:6],
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
