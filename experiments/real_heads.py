"""Lesson 06: three kinds of heads in SmolLM2, their controls, and the loss without them.

Heads are found on some stretches of Shakespeare, and measured and removed on others.
"""

from typing import Any

import torch
from torch import Tensor, nn

from course_lib.data import shakespeare
from course_lib.masks import causal_mask
from course_lib.pretrained import real_heads, smollm2

LESSON = "06"
SEEDS = (0,)
TEXTS, LENGTH = 4, 256  # of tokens, to find the heads on, and as many to remove them on
DRAWS, TOGETHER = 6, 5  # random heads as controls, and how many are removed together
FIRST_LAYERS = 3  # whose heads are removed one by one
TARGETS = {
    "previous": real_heads.previous,
    "followed": real_heads.followed,
    "first": real_heads.first,
}


def measure() -> dict:
    """Return mean weights of all heads and of the controls, and what removing heads costs."""
    model = smollm2.load()
    found_on, held_out = stretches(model, 2 * TEXTS, LENGTH).split(TEXTS)
    generator = torch.Generator().manual_seed(0)
    mixed = torch.stack([x[torch.randperm(LENGTH, generator=generator)] for x in found_on])
    even = causal_mask(LENGTH) / torch.arange(1, LENGTH + 1)[:, None]
    weights = {"text": mean_weights(model, found_on), "shuffled": mean_weights(model, mixed)}
    held = mean_weights(model, held_out)
    removed = without(model, held_out, weights["text"], generator)
    scramble(model, generator)
    weights["random"] = mean_weights(model, found_on)
    return {
        "settings": {"texts": TEXTS, "length": LENGTH, "together": TOGETHER},
        "weights": {name: as_lists(of) for name, of in weights.items()},
        "held out": as_lists(held),
        "even": {
            name: on_target(even, target(found_on)).mean().item()
            for name, target in TARGETS.items()
        },
        **removed,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for name in TARGETS:
        for text, of in figures["weights"].items():
            heads = torch.tensor(of[name])
            lines.append(f"{name:9} {text:9} largest {heads.max():.2f}, {(heads > 0.5).sum()} > .5")
        lines.append(f"{name:9} even      {figures['even'][name]:.3f}")
    lines.append(f"loss {figures['loss']}")
    for name, of in figures["removed"].items():
        lines += [
            f"{name:9} {heads}: {rises}"
            for heads, rises in zip(of["heads"], of["rise"], strict=True)
        ]
    return lines


def stretches(model: smollm2.SmolLM2, count: int, length: int) -> Tensor:
    """Draw stretches of Shakespeare's tokens, (count, length)."""
    text = shakespeare.complete_works()
    tokens = torch.tensor(model.tokenizer.encode(text[:2_000_000]).ids)
    generator = torch.Generator().manual_seed(0)
    starts = torch.randint(0, len(tokens) - length, (count, 1), generator=generator)
    return tokens[starts + torch.arange(length)]


def on_target(weights: Tensor, target: Tensor) -> Tensor:
    """Return the mean weight on a target, over the queries that have one."""
    return (weights * target).sum((-2, -1)) / target.any(-1).sum(-1)


def mean_weights(model: smollm2.SmolLM2, texts: Tensor) -> dict[str, Tensor]:
    """Return, for each target, the mean weight that each head (layer, head) gives to it."""
    sums = {name: torch.zeros(smollm2.LAYERS, smollm2.HEADS) for name in TARGETS}
    for tokens in texts:
        weights = real_heads.attention_weights(model, tokens)
        for name, target in TARGETS.items():
            sums[name] += on_target(weights, target(tokens)) / len(texts)
    return sums


def as_lists(weights: dict[str, Tensor]) -> dict[str, Any]:
    """Return tensors as JSON has them."""
    return {name: of.tolist() for name, of in weights.items()}


def without(
    model: smollm2.SmolLM2, texts: Tensor, weights: dict[str, Tensor], generator: torch.Generator
) -> dict[str, Any]:
    """Return the loss on new texts, and its rise without the heads that were found.

    Each rise is a pair: on all tokens, and on those that a repetition foretells, where the token
    that followed the same one before is the one that follows again.
    """
    told = texts[..., 1:].unsqueeze(-1) == texts.unsqueeze(-2)
    told = (told & real_heads.followed(texts)[..., :-1, :]).any(-1)

    def means(heads: list[list[int]]) -> list[float]:
        loss = real_heads.losses(model, texts, [(layer, head) for layer, head in heads])
        return [loss.mean().item(), loss[told].mean().item()]

    whole = means([])
    removed: dict[str, dict[str, list]] = {}

    def remove(name: str, heads: list[list[int]]) -> None:
        rise = [after - before for after, before in zip(means(heads), whole, strict=True)]
        kept = removed.setdefault(name, {"heads": [], "rise": []})
        kept["heads"].append(heads)
        kept["rise"].append(rise)

    for name, of in weights.items():
        ranked = of.flatten().argsort(descending=True)[:TOGETHER].tolist()
        heads = [list(divmod(place, smollm2.HEADS)) for place in ranked]
        remove(name, heads[:1])
        remove(name, heads)
    for layer in range(FIRST_LAYERS):
        for head in range(smollm2.HEADS):
            remove("first layers", [[layer, head]])
    for number in (1, TOGETHER):
        for _ in range(DRAWS):
            drawn = torch.randperm(smollm2.LAYERS * smollm2.HEADS, generator=generator)[:number]
            remove(f"random {number}", [list(divmod(x, smollm2.HEADS)) for x in drawn.tolist()])
    return {"loss": whole, "told": told.float().mean().item(), "removed": removed}


def scramble(model: nn.Module, generator: torch.Generator) -> None:
    """Shuffle the entries of each matrix of queries and of keys."""
    for name, parameter in model.named_parameters():
        if name.endswith(("w_q.weight", "w_k.weight")):
            order = torch.randperm(parameter.numel(), generator=generator)
            parameter.data = parameter.data.flatten()[order].view_as(parameter)
