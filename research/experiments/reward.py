"""Lesson 18: SmolLM2 learns from a program that says of its own answers whether they are right.

An arm is a reward and what is made of it. All take as many steps, from the same start, with as many
sampled answers; direct preference optimization has its answers from the start alone. What was
learned is measured on questions of the same kinds, and of kinds that nobody learned.
"""

import copy
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.assistant import answer_log_probs
from course_lib.assistant import preference_loss as dpo_loss
from course_lib.data import verifiable
from course_lib.data.verifiable import KINDS, Question, is_right
from course_lib.instruments import results, training
from course_lib.instruments.answered import share
from course_lib.pretrained.smollm2 import STOP, SmolLM2, turns
from course_lib.reward import answer_tokens, group_advantage, policy_loss
from research.experiments.assistant import base, with_lora

LESSON = "18"
SEEDS = (0, 1, 2)

STEPS, QUESTIONS, GROUP, LONGEST, TEMPERATURE, RATE = 16, 2, 8, 10, 0.7, 0.002
TESTED = 4  # questions of each kind
BETA, DPO_RATE, PAIRS = 0.1, 0.0005, 4
SETTINGS = {
    "steps": STEPS, "questions": QUESTIONS, "group": GROUP, "longest": LONGEST,
    "temperature": TEMPERATURE, "rate": RATE, "tested": TESTED,
    "beta": BETA, "rate of DPO": DPO_RATE, "pairs": PAIRS,
}  # fmt: skip
once = partial(results.once, "reward", SETTINGS)
LEARNING, TESTING = verifiable.split(TESTED, 0)
Turns = tuple[tuple[str, str], ...]  # questions, and what was answered
# four questions to learn from, of each kind one at least, answered as the reward wants it
EXAMPLES = tuple((x.asked, f"{x.word.capitalize()}.") for x in LEARNING[::12])


class Answers(NamedTuple):
    """What was drawn after a prompt: its tokens, a row an answer, and what they say."""

    prompt: Tensor
    drawn: Tensor
    mask: Tensor
    texts: list[str]

    @property
    def ended(self) -> list[bool]:
        """Say of each answer whether it came to its end."""
        return (self.drawn == STOP).any(dim=1).tolist()

    @property
    def lengths(self) -> list[int]:
        """Count the tokens of each answer, with its end."""
        return self.mask.sum(dim=1).tolist()


@cache
def encoded(question: Question, before: Turns = ()) -> Tensor:
    """Return a question's prompt as tokens, after earlier turns if there are any."""
    return torch.tensor(base().tokenizer.encode(turns(question.asked, None, before)).ids)


def asking(question: Question) -> Question:
    """Ask for what the reward is for, in words."""
    return question._replace(asked=f"{question.asked} Answer in one word.")


def sampled(
    model: SmolLM2, some: Sequence[Question], draw: torch.Generator, before: Turns = ()
) -> list[Answers]:
    """Answer questions, whose prompts are equally long, each as often as a group has answers."""
    prompts = torch.stack([encoded(x, before) for x in some])
    drawn = model.sample(prompts, GROUP, LONGEST, TEMPERATURE, draw)
    mask = answer_tokens(drawn, STOP)
    found = []
    for prompt, own, tokens in zip(prompts, drawn.split(GROUP), mask.split(GROUP), strict=True):
        kept = ([t for t in row.tolist() if t != STOP] for row in own)
        found.append(Answers(prompt, own, tokens, [model.tokenizer.decode(x) for x in kept]))
    return found


# --- rewards, and what is made of them


def right(answers: Answers, question: Question) -> list[float]:
    """Reward the right word in an answer that comes to its end in time."""
    return [
        float(ended and is_right(text, question.word))
        for text, ended in zip(answers.texts, answers.ended, strict=True)
    ]


def short(answers: Answers, question: Question) -> list[float]:
    """Reward each token that is not said."""
    return [1 - length / LONGEST for length in answers.lengths]


class Arm(NamedTuple):
    """A reward, what its advantage is, which tokens are trained, and how often on one draw."""

    reward: Callable = right
    advantage: Callable = group_advantage
    mask: Callable = answer_tokens
    repeats: int = 1
    clip: float = 0.2


ARMS = {
    "GRPO": Arm(),
    "rewarded alone": Arm(advantage=lambda rewards: rewards),
    "short": Arm(short),
    "no spread": Arm(advantage=lambda rewards: rewards - rewards.mean(-1, keepdim=True)),
    "end left out": Arm(mask=lambda drawn, stop: drawn != stop),
    "four steps a draw": Arm(repeats=4),
    "four steps a draw, no clip": Arm(repeats=4, clip=inf),
}


class Step(NamedTuple):
    """What a step learns from: rows of tokens, with what each answer is worth.

    `old` is log p of the drawn tokens when they were drawn; None in a first step on them.
    """

    tokens: Tensor
    mask: Tensor
    advantages: Tensor
    old: Tensor | None = None


def log_probs(model: SmolLM2, tokens: Tensor, drawn: int) -> Tensor:
    """Return log p of the last `drawn` tokens of each row, at the temperature of the drawing."""
    states = model.states(tokens)[:, -drawn - 1 : -1]
    scores = model.scores(states) / TEMPERATURE
    return -F.cross_entropy(scores.mT, tokens[:, -drawn:], reduction="none")


def steps(model: SmolLM2, arm: Arm, seed: int, seen: list[dict[str, Any]]) -> Iterator[Step]:
    """Draw answers from the model as it is at each step, and note in `seen` what came."""
    draw, choose = torch.Generator().manual_seed(seed), random.Random(seed)
    lengths = {x: len(encoded(x)) for x in LEARNING}
    while True:
        length = lengths[choose.choice(LEARNING)]
        some = choose.choices([x for x in LEARNING if lengths[x] == length], k=QUESTIONS)
        groups = sampled(model, some, draw)
        rewards = torch.tensor([arm.reward(a, x) for a, x in zip(groups, some, strict=True)])
        true = [sum(right(a, x)) / GROUP for a, x in zip(groups, some, strict=True)]
        tokens = torch.cat(
            [torch.cat([a.prompt.expand(GROUP, -1), a.drawn], dim=1) for a in groups]
        )
        seen.append(
            {
                "reward": rewards.mean().item(),
                "right": sum(true) / QUESTIONS,
                "length": sum(sum(a.lengths) for a in groups) / len(tokens),
                "spread": [bool(row.std() > 0) for row in rewards],
            }
        )
        drawn = torch.cat([a.drawn for a in groups])
        step = Step(tokens, arm.mask(drawn, STOP), arm.advantage(rewards).flatten())
        if arm.repeats > 1:
            with torch.no_grad():
                step = step._replace(old=log_probs(model, tokens, drawn.shape[1]))
        yield from [step] * arm.repeats


def loss(model: SmolLM2, step: Step, clip: float) -> Tensor:
    """Return the loss of a step on answers that this model has drawn."""
    new = log_probs(model, step.tokens, step.mask.shape[1])
    old = new.detach() if step.old is None else step.old
    return policy_loss(new, old, step.advantages, step.mask, clip)


# --- what was learned


@torch.no_grad()
def measured(
    model: SmolLM2, tested: Sequence[Question] = TESTING, before: Turns = ()
) -> list[dict[str, Any]]:
    """Answer the tested questions; keep what was said, and which of it is right."""
    draw, by_length = torch.Generator().manual_seed(9), {}
    for x in tested:
        by_length.setdefault(len(encoded(x)), []).append(x)
    found = []
    for alike in by_length.values():
        for i in range(0, len(alike), 4):
            some = alike[i : i + 4]
            for x, said in zip(some, sampled(model, some, draw, before), strict=True):
                kept = {"right": right(said, x), "ended": said.ended, "lengths": said.lengths}
                found.append({"kind": x.kind, "asked": x.asked, "texts": said.texts, **kept})
    return sorted(found, key=lambda x: KINDS.index(x["kind"]))


def tuned(arm: Arm, seed: int) -> dict[str, Any]:
    """Train an arm, and measure."""
    model, seen = with_lora(copy.deepcopy(base()), seed), []
    start = time.process_time()
    drawn, own_loss = steps(model, arm, seed, seen), partial(loss, clip=arm.clip)
    training.train(model, drawn, own_loss, steps=STEPS, learning_rate=RATE, seed=seed)
    seconds = round(time.process_time() - start, 1)
    return {"cpu_seconds": seconds, "seen": seen[:STEPS], "after": measured(model)}


# --- without sampling


class Pair(NamedTuple):
    """A question, and two answers to it, of which the first is right; does the other end?"""

    question: Question
    better: str
    worse: str
    ended: bool


@cache
def pairs() -> list[Pair]:
    """Return a right and another answer to each question to learn from, as the base drew them."""

    def found() -> list[list[Any]]:
        draw, kept = torch.Generator().manual_seed(0), []
        for x in LEARNING:
            [answers] = sampled(base(), [x], draw)
            judged = [*zip(right(answers, x), answers.texts, answers.lengths, strict=True)]
            good = [(length, text) for reward, text, length in judged if reward]
            bad = [(length, text) for reward, text, length in judged if not reward]
            if good and bad:
                # of equal length, as nearly as there are such
                a, b = min(
                    ((a, b) for a in good for b in bad), key=lambda two: abs(two[0][0] - two[1][0])
                )
                kept.append([list(x), a[1], b[1], a[0], b[0]])
        return kept

    kept = once("pairs", found)
    return [Pair(Question(*x), a, b, len(tokenised(b)) < length) for x, a, b, _, length in kept]


def tokenised(text: str) -> list[int]:
    """Return the tokens of a text."""
    return base().tokenizer.encode(text).ids


def both_log_probs(model: SmolLM2, some: Sequence[Pair]) -> tuple[Tensor, Tensor]:
    """Return log p of the better answers, and of the worse ones."""
    sides = []
    for answers in ([(x, x.better, True) for x in some], [(x, x.worse, x.ended) for x in some]):
        found = []
        for x, text, ended in answers:
            prompt = encoded(x.question)
            answer = torch.tensor(tokenised(text) + [STOP] * ended)
            row = torch.cat([prompt, answer])[None]
            states = model.states(row)[:, len(prompt) - 1 : -1]
            found.append(answer_log_probs(model.scores(states), answer[None])[0])
        sides.append(torch.stack(found))
    return sides[0], sides[1]


def preferred(rate: float, seed: int) -> dict[str, Any]:
    """Train on the pairs by direct preference optimization, and measure."""
    model, choose = with_lora(copy.deepcopy(base()), seed), random.Random(seed)
    with torch.no_grad():
        before = dict(zip(pairs(), zip(*both_log_probs(model, pairs()), strict=True), strict=True))
    gains: list[tuple[float, float]] = []

    def pair_loss(model: SmolLM2, batch: list[Pair]) -> Tensor:
        better, worse = both_log_probs(model, batch)
        better_before, worse_before = (
            torch.stack(x) for x in zip(*(before[x] for x in batch), strict=True)
        )
        gains.append(((better - better_before).mean().item(), (worse - worse_before).mean().item()))
        return dpo_loss(better, worse, better_before, worse_before, BETA)

    start = time.process_time()
    batches = (choose.sample(pairs(), PAIRS) for _ in range(STEPS))
    training.train(model, batches, pair_loss, steps=STEPS, learning_rate=rate, seed=seed)
    seconds = round(time.process_time() - start, 1)
    return {"cpu_seconds": seconds, "gains": gains, "after": measured(model)}


def measure() -> dict[str, Any]:
    """Measure the model as it came, each arm, and direct preference optimization."""
    torch.set_num_threads(1)
    before = once("before", lambda: measured(base()))
    asked = once("asked", lambda: measured(base(), [*map(asking, TESTING)]))
    shown = once("shown", lambda: measured(base(), before=EXAMPLES))
    runs = {name: partial(tuned, arm) for name, arm in ARMS.items()}
    runs["DPO"] = partial(preferred, DPO_RATE)
    arms = {
        name: [once(f"{name} {seed}", partial(run, seed)) for seed in SEEDS]
        for name, run in runs.items()
    }
    torch.set_num_threads(2)
    two = {name: once(f"{name} 0, two threads", partial(run, 0)) for name, run in runs.items()}
    return {
        "settings": SETTINGS,
        "before": before,
        "asked for one word": asked,
        "four examples": shown,
        "arms": arms,
        "two threads": two,
        "pairs": [[x.question.asked, x.better, x.worse, x.ended] for x in pairs()],
    }


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Yield what is right at once and in eight, of learned kinds and of others."""
    yield f"{'':28}{'learned kinds':>22}{'other kinds':>22}{'tokens':>10}{'seconds':>10}"
    untrained = ("before", "asked for one word", "four examples")
    runs = {x: [{"after": figures[x]}] for x in untrained} | figures["arms"]
    runs |= {f"{name}, two threads": [run] for name, run in figures["two threads"].items()}
    for name, each in runs.items():
        for run in each:
            found = run["after"]
            shares = (
                f"{share(found, kinds):10.1%}{share(found, kinds, GROUP):12.1%}"
                for kinds in (verifiable.LEARNED_KINDS, verifiable.OTHER_KINDS)
            )
            length = sum(sum(x["lengths"]) for x in found) / (GROUP * len(found))
            seconds = run.get("cpu_seconds", "")
            yield f"{name:28}{''.join(shares)}{length:10.1f}{seconds:>10}"
