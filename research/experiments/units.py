"""Lesson 05: which hidden units of SmolLM2's feed-forward networks fire on one kind of word?

For each kind, the unit is chosen that separates its words best from all other tokens in one set of
sentences; then it is tested on other sentences, with other words of the kind. The threshold is
halfway between the two in the first set. As a control, units are chosen in the same way for sets
of tokens that have nothing in common: as many as the smallest kind has, each of them a token that
occurs only once.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from course_lib.pretrained import smollm2

LESSON = "05_units"
SEEDS = (0,)
KINDS = {
    "M": "months",
    "C": "colours",
    "P": "cities",
    "D": "weekdays",
    "A": "animals",
    "B": "body parts",
    "N": "negations",
}
CHOSEN_ON = """My brother was born in <M>March and my aunt in <M>October of the same year.
She bought a <C>red dress and a pair of <C>green shoes for the wedding.
The train from <P>Paris to <P>Berlin leaves at nine in the morning.
Put the <C>yellow box under the table before the guests arrive.
We met on a <D>Monday and were married on a <D>Friday in <M>June.
He broke his <B>arm when he fell from the ladder in the garden.
The doctor looked at her <B>knee and told her to rest for a week.
A <A>dog and a <A>horse were sleeping in the shade of the barn.
They have <N>not answered any of our letters since the summer.
I would <N>never sell this house to a stranger, said the old man.
The company will open an office in <P>Madrid and another in <P>Tokyo.
Snow fell in <M>January, and by <M>April the river was high.
The <A>cat watched a <A>mouse that came out of the wall.
There was <N>no bread in the kitchen and nobody had been shopping.
Her <B>shoulder hurt after she had carried the bags upstairs.
On <D>Wednesday the shop closes early, so come before noon.
The door was painted <C>blue, which nobody in the village liked.
Our plane to <P>London was late because of the fog."""
TESTED_ON = """The museum is closed in <M>February, but it opens again in <M>May.
A <C>purple flag was flying above the <C>white tower.
From <P>Rome we drove to <P>Vienna, and there the car broke down.
The meeting was moved from <D>Tuesday to <D>Thursday without any reason.
She touched his <B>elbow and pointed to the window.
A <A>wolf had been seen near the farm where the <A>sheep were kept.
The letter did <N>not say who had sent it.
He had <N>never learned to swim, although he lived by the sea.
In <M>August the streets are empty, and in <M>September everybody is back.
The mountains looked <C>orange in the evening and <C>black at night.
Students from <P>Moscow and <P>Athens visited the school.
His <B>ankle was swollen, so the coach took him out of the game.
The <A>lion slept while an <A>elephant drank from the pond.
We close on <D>Sunday, and on <D>Saturday we open at ten.
It will rain in <M>November, as it does every year in <M>December.
The wine was a <C>pink one from the south, and it was cheap.
There is <N>no reason to hurry, the bus is late anyway.
She flew to <P>Dublin after a week in <P>Lisbon."""
DOUBLE = ("May I come in May?", "Soldiers march in March.", "In july and in october.")
RANDOM_SETS = 20
SET = 3  # tokens, as in the smallest kind


@torch.no_grad()
def activations(model: smollm2.SmolLM2, text: str) -> tuple[Tensor, list[str]]:
    """Return what all hidden units hold for each token but the first, and the tokens."""
    held = [torch.empty(0)] * smollm2.LAYERS

    def keep(place: int) -> Callable[[nn.Module, tuple[Tensor]], None]:
        return lambda _, given: held.__setitem__(place, given[0])

    hooks = [
        model.get_submodule(f"blocks.{i}.feed_forward.sublayer.w_2").register_forward_pre_hook(
            keep(i)
        )
        for i in range(smollm2.LAYERS)
    ]
    ids = model.tokenizer.encode(text).ids
    model.states(torch.tensor(ids))
    for hook in hooks:
        hook.remove()
    words = [model.tokenizer.decode([token]) for token in ids]
    return torch.stack(held, 1).flatten(1)[1:], words[1:]


def read(model: smollm2.SmolLM2, lines: str) -> tuple[Tensor, list[str], list[str]]:
    """Return the activations of all lines, their tokens, and the kind of each, or nothing."""
    found, words, kinds = [], [], []
    for line in lines.splitlines():
        marked = {word: kind for kind, word in re.findall(r"<(\w)>(\w+)", line)}
        numbers, tokens = activations(model, re.sub(r"<\w>", "", line))
        found.append(numbers)
        words += tokens
        kinds += [marked.get(token.strip(), "") for token in tokens]
    return torch.cat(found), words, kinds


def best(numbers: Tensor, of_kind: Tensor) -> dict:
    """Choose the unit, and the sign, that separate these tokens from the others by most."""
    chosen = []
    for sign in (1, -1):
        inside, outside = sign * numbers[of_kind], sign * numbers[~of_kind]
        mean, gap = inside.mean(0), inside.amin(0) - outside.amax(0)
        gap = torch.where(mean > 0.3, gap / mean, -torch.inf)
        unit = int(gap.argmax())
        threshold = (inside[:, unit].min() + outside[:, unit].max()) / 2
        chosen.append(
            {"unit": unit, "sign": sign, "gap": gap[unit].item(), "threshold": threshold.item()}
        )
    return max(chosen, key=lambda x: x["gap"])


def of_random_sets(numbers: Tensor, words: Sequence[str], kinds: Sequence[str]) -> list[float]:
    """Return the gap of the best unit for each set of tokens of no kind that occur only once."""
    counts = Counter(word.strip() for word in words)
    once = torch.tensor(
        [i for i, word in enumerate(words) if counts[word.strip()] == 1 and not kinds[i]]
    )
    generator, gaps = torch.Generator().manual_seed(0), []
    for _ in range(RANDOM_SETS):
        drawn = once[torch.randperm(len(once), generator=generator)[:SET]]
        gaps.append(round(best(numbers, torch.isin(torch.arange(len(numbers)), drawn))["gap"], 3))
    return gaps


def measure() -> dict:
    """Return each kind's unit, and what it holds for every token of the other sentences."""
    model = smollm2.load()
    first, first_words, chosen_on = read(model, CHOSEN_ON)
    second, words, tested_on = read(model, TESTED_ON)
    kinds = {}
    for mark, name in KINDS.items():
        unit = best(first, torch.tensor([kind == mark for kind in chosen_on]))
        held = [round(x, 3) for x in (unit["sign"] * second[:, unit["unit"]]).tolist()]
        block, number = divmod(unit["unit"], smollm2.D_FF)
        shares = {key: round(unit[key], 3) for key in ("gap", "threshold")}
        kinds[name] = {"block": block, "unit": number, "sign": unit["sign"], **shares, "held": held}
    months = kinds["months"]
    unit = months["block"] * smollm2.D_FF + months["unit"]
    double = {}
    for line in DOUBLE:
        numbers, tokens = activations(model, "\n" + line)
        held = numbers[:, unit].tolist()
        double[line] = [[token, round(x, 2)] for token, x in zip(tokens, held, strict=True)]
    return {
        "kinds": kinds,
        "words": words,
        "of": [KINDS.get(kind, "") for kind in tested_on],
        "random": of_random_sets(first, first_words, chosen_on),
        "double": double,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    rows = []
    for name, unit in figures["kinds"].items():
        over = [
            (word.strip(), kind == name)
            for word, kind, x in zip(figures["words"], figures["of"], unit["held"], strict=True)
            if x > unit["threshold"]
        ]
        rows.append(
            f"{name:10} block {unit['block']}, unit {unit['unit']}, gap {unit['gap']}: "
            f"{sum(right for _, right in over)} of {figures['of'].count(name)}, false: "
            f"{[word for word, right in over if not right]}"
        )
    return [*rows, f"random sets: {figures['random']}", str(figures["double"])]
