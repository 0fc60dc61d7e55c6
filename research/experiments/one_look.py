"""Lesson 06: what SmolLM2 loses when the nine heads of each layer look at the same places.

In all thirty layers the nine use the weights of one of them, or the mean of the nine; each keeps
its own values. Which head leads is chosen on another list, or on other sentences, one layer after
another from below.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax
from course_lib.instruments import results
from course_lib.masks import causal_mask
from course_lib.pretrained import smollm2
from research.experiments.circuit import LENGTH, twice
from research.experiments.units import CHOSEN_ON, TESTED_ON

LESSON = "06"
SEEDS = (0, 1, 2)
CHOSEN_BY = 3  # the seed of the list by which heads are chosen
SENTENCES = 4  # of a text
HEADS, MEAN = 9, 9  # heads are counted from 0, and the mean of all is one more of them
LAYERS = range(1, 1 + smollm2.LAYERS)

Leaders = Mapping[int, Tensor]  # for each layer, from 1, who leads in each text of the batch


class OneLook:
    """A rule for grouped queries in which a layer's heads may all look where one of them looks."""

    def __init__(self):
        self.layer = 0
        self.leaders: Leaders = {}

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend."""
        self.layer += 1
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], dim=-3) for x in (k, v))
        weights = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, mask)
        if (leader := self.leaders.get(self.layer)) is not None:
            ten = torch.cat([weights, weights.mean(-3, keepdim=True)], dim=-3)
            weights = ten[torch.arange(len(leader)), leader].unsqueeze(-3)
        return weights @ v


class Text:
    """A text, and what SmolLM2 loses on it; `counts` takes the losses that matter."""

    def __init__(
        self,
        model: smollm2.SmolLM2,
        rule: OneLook,
        tokens: Tensor,
        counts: Callable[[Tensor], Tensor],
    ):
        self.model, self.rule, self.tokens, self.counts = model, rule, tokens, counts
        self.vectors = model.words(tokens).unsqueeze(0)
        [self.loss] = self.run({}, self.vectors)

    def run(self, leaders: Leaders, x: Tensor) -> list[float]:
        """Return the mean loss for each text of the batch, with these leaders.

        `x` goes into the first layer that has a leader.
        """
        first = min(leaders, default=1)
        batch = len(leaders[first]) if leaders else 1
        x = x.expand(batch, -1, -1)
        for block in range(first, 1 + smollm2.LAYERS):
            x = self.step(x, block, leaders)
        logits = self.model.scores(self.model.last_norm(x))[:, :-1]
        wanted = self.tokens[1:].expand(batch, -1)
        losses = F.cross_entropy(logits.mT, wanted, reduction="none")
        return [self.counts(loss).mean().item() for loss in losses]

    def step(self, x: Tensor, layer: int, leaders: Leaders) -> Tensor:
        """Return what one block makes of its input."""
        self.rule.layer, self.rule.leaders = layer - 1, leaders
        self.model.rules[layer - 1].places = torch.arange(len(self.tokens))
        return self.model.blocks[layer - 1](x, causal_mask(len(self.tokens)))


def chosen(text: Text) -> list[int]:
    """Return the head that should lead in each layer, after those below, who lead already."""
    heads, x = [], text.vectors
    for layer in LAYERS:
        losses = text.run({layer: torch.arange(HEADS)}, x)
        heads.append(losses.index(min(losses)))
        x = text.step(x, layer, {layer: torch.tensor([heads[-1]])})
    return heads


def measured(text: Text, heads: list[int]) -> dict[str, float]:
    """Return the loss as it is, with one look in every layer, and with the mean in every layer."""
    looks = {"one look": heads, "mean": [MEAN] * smollm2.LAYERS}
    losses = {"as it is": text.loss}
    for name, of in looks.items():
        leaders = {layer: torch.tensor([head]) for layer, head in zip(LAYERS, of, strict=True)}
        [losses[name]] = text.run(leaders, text.vectors)
    return losses


@torch.no_grad()
def measure() -> dict[str, Any]:
    """Return the losses on three lists and on three texts."""
    rule = OneLook()
    model = smollm2.load(rule=rule)

    def second_copy(loss: Tensor) -> Tensor:
        return loss[LENGTH + 1 :]

    def of_sentences(lines: Sequence[str]) -> Text:
        text = re.sub(r"<\w>", "", " ".join(lines))
        tokens = torch.tensor([0, *model.tokenizer.encode(text).ids])
        return Text(model, rule, tokens, lambda loss: loss)

    lines = TESTED_ON.splitlines()
    parts = [lines[SENTENCES * i : SENTENCES * (i + 1)] for i in range(len(SEEDS))]
    lists = [Text(model, rule, twice(seed), second_copy) for seed in (CHOSEN_BY, *SEEDS)]
    sentences = [*map(of_sentences, [CHOSEN_ON.splitlines()[:SENTENCES], *parts])]
    figures = {}
    for name, (first, *tested) in {"list": lists, "sentences": sentences}.items():
        heads = results.once("one_look", SENTENCES, name, partial(chosen, first))
        runs = [measured(text, heads) for text in tested]
        print(name, heads, runs, flush=True)
        figures[name] = {"heads": heads, "runs": runs}
    # four digits are enough for a figure
    return json.loads(json.dumps(figures), parse_float=lambda x: round(float(x), 4))


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for name, of in figures.items():
        lines.append(f"{name}, heads from 0 {of['heads']}")
        lines += [str(run) for run in of["runs"]]
    return lines
