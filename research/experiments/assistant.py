"""Lesson 17: SmolLM2 learns to turn sentences into commands, by LoRA and by three baselines.

Trained is as on the page: with commands alone, then with refused commands and general questions
among them. A held-out command is right if the line of JSON is, to the last character. What was
forgotten is measured on general questions and on plain sentences.
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
from typing import Any

import torch
from torch import Tensor

from course_lib.assistant import LowRankLinear, adapt, answer_targets
from course_lib.data import home, home_commands
from course_lib.data.home_commands import Command
from course_lib.data.questions import beginning, questions
from course_lib.instruments import results, training
from course_lib.pretrained import smollm2
from course_lib.pretrained.rollouts import share_right
from course_lib.pretrained.smollm2 import SmolLM2, conversations, exactly, turns
from course_lib.pretraining import masked_loss

LESSON = "17"
SEEDS = (0, 1, 2)

LEARNING, HELD_OUT = 2000, 30  # of each list
BATCH, RANK, ALPHA, BLOCKS = 4, 8, 16, 10
LONGEST = 40  # tokens of a command
NAMES = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")
SETTINGS = {
    "learning": LEARNING, "held out": HELD_OUT, "batch": BATCH,
    "rank": RANK, "alpha": ALPHA, "blocks": BLOCKS, "names": NAMES,
}  # fmt: skip
once = partial(results.once, "assistant", SETTINGS)  # what an ended run has measured is kept


HALF, RATE = 60, 0.002  # steps with commands alone, and as many with all; the rate of both
LAST_BLOCK = (0.0003, 0.001, 0.003)  # rates of the last block, trained whole; compared on a seed
BEST = LAST_BLOCK[1]
SEEN = HALF * (BATCH + 3)  # commands in a training

Batch = tuple[Tensor, Tensor, Tensor]


def prompt(said: str, before: Sequence[tuple[str, str]] = ()) -> str:
    """Return a sentence in the form of talk, without a system turn."""
    return turns(said, system=None, before=before)


def loss(model: SmolLM2, batch: Batch) -> Tensor:
    """Return the mean loss of the answers' tokens, in nats."""
    states = model.states(batch[0])
    return masked_loss(states, model.words.weight, answer_targets(*batch))


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


def batches(learning: Sequence[Command], seed: int) -> Iterator[Batch]:
    """Yield batches of commands for ever."""
    draw = random.Random(seed)
    while True:
        yield conversations(base().tokenizer, pairs(draw.sample(learning, BATCH)))


def mixed(learning: Sequence[Command], seed: int) -> Iterator[Batch]:
    """Yield batches for ever: two commands, one that was refused, and a general question."""
    draw = random.Random(seed)
    while True:
        *plain, refused = draw.sample(learning, 3)
        answer, refusal = home.mistaken(refused, draw)
        again = prompt(refusal, [(refused.said, answer)]), refused.means
        rows = [*pairs(plain), again, draw.choice(own_answers())]
        yield conversations(base().tokenizer, rows)


def lists(seed: int) -> dict[str, list[Command]]:
    """Return the held-out commands."""
    return {name: commands(seed)[name] for name in home_commands.LISTS}


def shares(model: SmolLM2, seed: int) -> dict[str, float]:
    """Return the share of each held-out list that is right."""
    return {name: sum(exactly(model, pairs(some))) / HELD_OUT for name, some in lists(seed).items()}


def mended(model: SmolLM2, some: Sequence[Command]) -> dict[str, int]:
    """Count what is refused of commands for a home, and is right by each way to mend it."""
    there, counts = home.for_commands(some), Counter()
    for x, is_right_at_once in zip(some, exactly(model, pairs(some)), strict=True):
        answer = x.means if is_right_at_once else "".join(model.write(prompt(x.said), LONGEST))
        again = {"as written": answer, "nearest name": answer, "second try": answer}
        try:
            home.obey(there, answer)
        except home.Refused as refusal:
            counts["refused"] += 1
            again["nearest name"] = home.with_nearest(there, answer)
            [found] = exactly(model, [(prompt(str(refusal), [(x.said, answer)]), x.means)])
            again["second try"] = x.means if found else answer
        counts.update(way for way, text in again.items() if text == x.means)
    return {way: counts[way] for way in ("refused", "as written", "nearest name", "second try")}


# --- what was forgotten


def answers(model: SmolLM2, some: Sequence[str], longest: int = 25) -> list[str]:
    """Answer questions, always by the likeliest token."""
    return ["".join(model.write(prompt(question), longest)) for question in some]


ASKED = questions()
LEARNED, TESTED = ASKED[:39], ASKED[39:]  # of general questions
FORMED = [(x, word) for x, word in TESTED if re.match("What is the (capital|opposite) of", x)]


@torch.no_grad()
def commanding(model: SmolLM2) -> float:
    """Return the share of general questions to which the answer begins as a command does."""
    [brace, *_] = model.tokenizer.encode('{"action"').ids
    rows = (torch.tensor(model.tokenizer.encode(prompt(x)).ids) for x, _ in TESTED)
    return sum(int(model(row)[-1].argmax()) == brace for row in rows) / len(TESTED)


# --- baselines that train nothing


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
    return exactly(model, asked, rows=2)


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


def by_program(seed: int) -> dict[str, float]:
    """Return the shares that counting has right, where the home mends names by their spelling."""
    answer, found = counted(commands(seed)["learning"][:SEEN]), {}
    for name, some in lists(seed).items():
        there = home.for_commands(some)
        told = (answer(x.said) for x in some)
        told = [
            x if json.loads(x)["target"] in there else home.with_nearest(there, x) for x in told
        ]
        found[name] = sum(map(str.__eq__, told, (x.means for x in some))) / HELD_OUT
    return found


def by_examples(seed: int) -> dict[str, float]:
    """Return the shares that the model has right after eight similar commands in its prompt."""
    drawn = commands(seed)
    return {
        name: sum(in_context(base(), drawn[name], drawn["learning"])) / HELD_OUT
        for name in home_commands.LISTS
    }


def train(model: SmolLM2, stream: Iterator[Batch], steps: int, rate: float, seed: int) -> None:
    """Train what is not frozen."""
    training.train(model, stream, loss, steps=steps, learning_rate=rate, seed=seed)


def measured(model: SmolLM2, seed: int) -> dict[str, Any]:
    """Measure what a model does with a home, and how often it answers anything by a command."""
    return {
        "shares": shares(model, seed),
        "constrained": {
            name: sum(exactly(model, pairs(some), home.possible(home.for_commands(some))))
            / HELD_OUT
            for name, some in lists(seed).items()
        },
        "mended": mended(model, lists(seed)["new rooms"]),
        "commanding": commanding(model),
    }


def by_lora(seed: int) -> dict[str, Any]:
    """Train as the page does, in two halves, and measure after each."""
    model, learning = with_lora(copy.deepcopy(base()), seed), commands(seed)["learning"]
    start = time.process_time()
    train(model, batches(learning, seed), HALF, RATE, seed)
    first = {"cpu_seconds": round(time.process_time() - start, 1)}
    first |= measured(model, seed) | {"begun": share_right(model, FORMED, beginning)}
    start = time.process_time()
    train(model, mixed(learning, seed), HALF, RATE, seed)
    second = {"cpu_seconds": round(time.process_time() - start, 1)}
    second |= measured(model, seed) | {"right": share_right(model, TESTED)}
    return {"commands alone": first, "mixed": second}


def by_last_block(rate: float, seed: int) -> dict[str, float]:
    """Train the last block whole, as many steps as LoRA, and return the shares."""
    model = with_last_block(copy.deepcopy(base()))
    train(model, batches(commands(seed)["learning"], seed), 2 * HALF, rate, seed)
    return shares(model, seed)


# --- memory


def peak(way: str) -> float:
    """Return the most memory of a process that takes three steps, in MB."""
    import resource  # which Windows does not have

    torch.set_num_threads(1)
    model = base()
    if way == "LoRA":
        with_lora(model, 0)
    elif way == "last block":
        with_last_block(model)
    train(model, batches(commands(0)["learning"], 0), 3, 1e-5, 0)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def apart(way: str) -> float:
    """Measure `peak` in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(peak, (way,))


def measure() -> dict[str, Any]:
    """Measure LoRA and the baselines on each seed."""
    baselines = {"in context": by_examples, "last block": partial(by_last_block, BEST)}
    figures = {
        "settings": SETTINGS,
        "own answers": [answer for _, answer in own_answers()],
        "right before": once("before", lambda: share_right(base(), TESTED)),
        "begun before": once("begun", lambda: share_right(base(), FORMED, beginning)),
        "LoRA": [once(f"LoRA {seed}", partial(by_lora, seed)) for seed in SEEDS],
        "baselines": {
            name: [once(f"{name} {seed}", partial(way, seed)) for seed in SEEDS]
            for name, way in baselines.items()
        },
        "rates": {
            rate: once(f"last block {rate}", partial(by_last_block, rate, SEEDS[0]))
            for rate in LAST_BLOCK
        },
        "memory": {
            way: once(f"memory {way}", partial(apart, way))
            for way in ("LoRA", "last block", "everything")
        },
    }
    figures["baselines"]["counting"] = [by_program(seed) for seed in SEEDS]
    return figures


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the shares of right commands, how refusals were mended, and what was forgotten."""
    halves = ("commands alone", "mixed")
    ways = {x: [run[x]["shares"] for run in figures["LoRA"]] for x in halves}
    ways |= {
        f"{x}, constrained": [run[x]["constrained"] for run in figures["LoRA"]] for x in halves
    }
    ways |= figures["baselines"]
    ways |= {f"last block, {rate}": [run] for rate, run in figures["rates"].items()}
    yield f"{'right, mean of seeds':28}" + "".join(f"{x:>14}" for x in home_commands.LISTS)
    for way, runs in ways.items():
        means = (sum(run[x] for run in runs) / len(runs) for x in home_commands.LISTS)
        yield f"{way:28}" + "".join(f"{x:14.1%}" for x in means)
    for half in halves:
        for run in figures["LoRA"]:
            yield f"{half}, new rooms: {run[half]['mended']}"
            yield f"{half}: {run[half]['commanding']:.0%} of general questions get a command"
    begun_then = ", ".join(f"{run['commands alone']['begun']:.0%}" for run in figures["LoRA"])
    yield f"answers begun for it: before {figures['begun before']:.0%}, then {begun_then}"
    right = ", ".join(f"{run['mixed']['right']:.0%}" for run in figures["LoRA"])
    yield f"general questions right: before {figures['right before']:.0%}, mixed {right}"
    for name, megabytes in figures["memory"].items():
        yield f"memory, {name}: {megabytes:,.0f} MB"
