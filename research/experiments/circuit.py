"""Lesson 06: the heads of SmolLM2 that continue random tokens, and the one that they hang on.

Random tokens are read twice: only the first copy can foretell the second. The best induction heads
are watched while each of the 270 heads is silenced in turn.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax
from course_lib.instruments import results
from course_lib.masks import causal_mask
from course_lib.multi_head import induction_score
from course_lib.pretrained import smollm2

LESSON = "06"
SEEDS = (0, 1, 2)
LENGTH = 25  # of random tokens, read twice
COMMON = (1000, 10_000)  # their numbers: common tokens, no single bytes
WATCHED = 5  # induction heads, the best on average
BACK = (1, 2, 3)  # tokens by which the previous-token head is made to look back
SENTENCE = "Mr and Mrs Dursley lived here. Mr and Mrs Dursley slept"
SETTINGS = [LENGTH, COMMON, WATCHED, BACK, SENTENCE]

Head = tuple[int, int]  # layer and head, from 1
Changes = Mapping[Head, Tensor | float]  # weights that heads use in place of theirs; 0 silences one
ALL = [(layer, head) for layer in range(1, 1 + smollm2.LAYERS) for head in range(1, 10)]


class Watch:
    """A rule for grouped queries that keeps its weights, and gives some heads others to use."""

    def __init__(self):
        self.layer = 0
        self.changes: Changes = {}
        self.weights: dict[int, Tensor] = {}

    def begin(self, layer: int, changes: Changes) -> None:
        """Expect a call for each layer, from this one on."""
        self.layer, self.changes, self.weights = layer - 1, changes, {}

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend."""
        self.layer += 1
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], dim=-3) for x in (k, v))
        self.weights[self.layer] = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, mask)
        used = self.weights[self.layer].clone()
        for (layer, head), weights in self.changes.items():
            if layer == self.layer:
                used[..., head - 1, :, :] = weights
        return used @ v


class Reading:
    """What SmolLM2 does with one text, as it is and while some heads use other weights."""

    def __init__(self, model: smollm2.SmolLM2, watch: Watch, tokens: Tensor):
        self.model, self.watch, self.tokens = model, watch, tokens
        self.inputs = [model.words(tokens)]  # of each block
        self.weights: dict[int, Tensor] = {}
        self.loss = self.run({})
        self.weights = watch.weights

    def run(self, changes: Changes) -> Tensor:
        """Return the loss of each next token; the weights are the watch's."""
        first = min((layer for layer, _ in changes), default=1)
        self.watch.begin(first, changes)
        for rule in self.model.rules:
            rule.places = torch.arange(len(self.tokens))
        x, mask = self.inputs[first - 1], causal_mask(len(self.tokens))
        for block in self.model.blocks[first - 1 :]:
            x = block(x, mask)
            if not self.weights:
                self.inputs.append(x)
        logits = self.model.scores(self.model.last_norm(x))
        self.said = logits.argmax(-1)
        return F.cross_entropy(logits[:-1], self.tokens[1:], reduction="none")

    def scores(self, heads: Collection[Head]) -> list[float]:
        """Return the induction scores of heads in the last run."""
        weights = self.weights | self.watch.weights
        return [induction_score(weights[i][j - 1], self.tokens).item() for i, j in heads]


def twice(seed: int) -> Tensor:
    """Return the token that begins a text, and random ones, two times."""
    generator = torch.Generator().manual_seed(seed)
    once = torch.randint(*COMMON, (LENGTH,), generator=generator)
    return torch.cat([torch.zeros(1).long(), once, once])


def of_copies(loss: Tensor) -> dict[str, float]:
    """Return the mean loss of both copies; nothing foretells the first token of the second."""
    return {"first": loss[:LENGTH].mean().item(), "second": loss[LENGTH + 1 :].mean().item()}


def whole(reading: Reading) -> dict[str, Any]:
    """Return the scores of all heads, and the loss of both copies."""
    layers = torch.stack([*reading.weights.values()])
    return {
        "induction": induction_score(layers, reading.tokens).tolist(),
        "previous": layers.diagonal(-1, -2, -1).mean(-1).tolist(),
        **of_copies(reading.loss),
    }


def silenced(reading: Reading, heads: Collection[Head], watched: Collection[Head]) -> dict:
    """Return the induction scores of the watched heads, and the loss, without some heads."""
    loss = reading.run(dict.fromkeys(heads, 0.0))
    return {"scores": reading.scores(watched), **of_copies(loss)}


def seen_by(side: str, reading: Reading, head: Head, watched: Collection[Head]) -> list[float]:
    """Return the scores where the watched heads' layers alone notice that a head is silent.

    `side` says what of these layers is made of the stream without it: "keys" or "queries".
    """
    layers = {layer for layer, _ in watched}
    attentions = {
        i: reading.model.get_submodule(f"blocks.{i - 1}.attention.sublayer.attention")
        for i in layers
    }
    blind: dict[int, Tensor] = {}

    def keep(layer: int):
        return lambda module, args: blind.update({layer: args[0]})

    def swap(layer: int):
        def swapped(module: torch.nn.Module, args: tuple) -> tuple:
            query, key, *rest = args
            given = {"queries": query, "keys": key} | {side: blind[layer]}
            return given["queries"], given["keys"], *rest

        return swapped

    for make, changes in ((keep, {head: 0.0}), (swap, {})):
        hooks = [x.register_forward_pre_hook(make(i)) for i, x in attentions.items()]
        reading.run(changes)
        for hook in hooks:
            hook.remove()
    return reading.scores(watched)


def turned(reading: Reading, head: Head, back: int, watched: Collection[Head]) -> dict[str, Any]:
    """Return where the watched heads look when a head looks back by so many tokens.

    Their weights in the second copy are on what followed in the first one after 1, 2 or 3 tokens;
    and the model says those tokens in so large a share of cases.
    """
    n = len(reading.tokens)
    loss = reading.run({head: torch.eye(n).roll(back, 0).tril()})
    weights = [reading.watch.weights[i][j - 1] for i, j in watched]
    # the first tokens of the second copy may not have met so much yet
    lines = {x: [of.diagonal(x - LENGTH)[x + 1 :] for of in weights] for x in (1, 2, 3)}
    says = {
        str(x): (reading.said[LENGTH + 1 : -x] == reading.tokens[LENGTH + 1 + x :]).float().mean()
        for x in (1, 2, 3)
    }
    return {
        "says": {x: share.item() for x, share in says.items()},
        "after": {str(x): [line.mean().item() for line in of] for x, of in lines.items()},
        **of_copies(loss),
    }


def of_sentence(model: smollm2.SmolLM2, watch: Watch, heads: Collection[Head]) -> dict[str, Any]:
    """Return the tokens of the sentence, and the weights of heads on them."""
    ids = model.tokenizer.encode(SENTENCE).ids
    reading = Reading(model, watch, torch.tensor([0, *ids]))
    rows = [reading.weights[layer][head - 1] for layer, head in heads]
    words = [model.tokenizer.decode([x]) for x in ids]
    return {"words": words, "weights": [of.tolist() for of in rows]}


def best(runs: list[dict], name: str, number: int) -> list[Head]:
    """Return the heads with the highest scores, averaged over the texts."""
    mean = torch.tensor([run[name] for run in runs]).mean(0).flatten()
    return [ALL[place] for place in mean.topk(number).indices.tolist()]


@torch.no_grad()
def measure() -> dict[str, Any]:
    """Return what the heads look at, and what is left of it without each of them."""
    watch = Watch()
    model = smollm2.load(rule=watch)
    texts = [twice(seed) for seed in SEEDS]
    runs = [whole(Reading(model, watch, text)) for text in texts]
    watched, [previous] = best(runs, "induction", WATCHED), best(runs, "previous", 1)

    def of_text(text: Tensor) -> dict[str, Any]:
        reading = Reading(model, watch, text)
        return {
            "without each": [silenced(reading, [head], watched) for head in ALL],
            "without the watched": silenced(reading, watched, watched),
            "keys": seen_by("keys", reading, previous, watched),
            "queries": seen_by("queries", reading, previous, watched),
            "turned": [turned(reading, previous, back, watched) for back in BACK],
        }

    for seed, (run, text) in enumerate(zip(runs, texts, strict=True)):
        run |= results.once("circuit", SETTINGS, str(seed), lambda text=text: of_text(text))
    figures = {
        "watched": watched,
        "previous": previous,
        "sentence": of_sentence(model, watch, [previous, watched[0]]),
        "runs": runs,
    }
    # four digits are enough for a figure
    return json.loads(json.dumps(figures), parse_float=lambda x: round(float(x), 4))


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"watched {figures['watched']}, previous {figures['previous']}"]

    def row(name: str, scores: list[float], loss: float) -> str:
        return f"{name:24}" + "".join(f"{x:6.2f}" for x in scores) + f"   second {loss:.2f}"

    for run in figures["runs"]:
        scores = [run["induction"][i - 1][j - 1] for i, j in figures["watched"]]
        lines += ["", row(f"whole, first {run['first']:.2f}", scores, run["second"])]
        without = zip(ALL, run["without each"], strict=True)
        costly = sorted(without, key=lambda x: sum(x[1]["scores"]))
        lines += [row(f"without {head}", x["scores"], x["second"]) for head, x in costly[:8]]
        last = run["without the watched"]
        lines.append(row("without the watched", last["scores"], last["second"]))
        for back, of in zip(BACK, run["turned"], strict=True):
            after = {x: [round(y, 2) for y in line] for x, line in of["after"].items()}
            lines.append(
                f"looks {back} back: {after}, says {of['says']}, second {of['second']:.2f}"
            )
        for side in ("keys", "queries"):
            lines.append(f"{side:24}" + "".join(f"{x:6.2f}" for x in run[side]))
    return lines
