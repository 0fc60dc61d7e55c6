"""Lesson 16: is reading enough, or does an encoder's lead come from pairs of sentences?

A control of `pretraining`, with its commands, lists, penalties and seeds: a linear head on the mean
of SmolLM2's states. It has read more text than MiniLM, and no pairs of like sentences.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from course_lib.instruments import intents, results
from course_lib.pretrained import smollm2
from research.experiments.few_labels import linear, share_right
from research.experiments.pretraining import LABELS, LISTS, PENALTIES, SEEDS, by_labels, split

LESSON = "16"
BLOCKS = (15, 30)  # a middle one, and the last
FIRST = 1  # the token before each sentence, which is not in the mean: much attention goes there
ROWS = 64
SETTINGS = {"blocks": BLOCKS, "labels": LABELS, "penalties": PENALTIES}
once = partial(results.once, "without_pairs", SETTINGS)


def texts() -> list[str]:
    """List all sentences of all seeds."""
    used = (
        x.said
        for seed in SEEDS
        for name, some in split(seed).items()
        for x in (some[: max(LABELS)] if name == "learning" else some)
    )
    return sorted({*used})


@cache
def means() -> dict[str, Float[Tensor, "blocks 576"]]:
    """Describe each sentence by the mean of its tokens' states, after each of the blocks.

    The model computes in bfloat16; its weights come in four bits.
    """
    model, by_length = smollm2.load().requires_grad_(False), {}
    for text in texts():
        tokens = [FIRST, *model.tokenizer.encode(text).ids]
        by_length.setdefault(len(tokens), []).append((text, tokens))
    model, kept, found = model.to(torch.bfloat16), {}, {}
    for block in BLOCKS[:-1]:
        keep = partial(lambda block, _, __, states: kept.__setitem__(block, states), block)
        model.blocks[block - 1].register_forward_hook(keep)
    with torch.inference_mode():
        for some in by_length.values():
            for i in range(0, len(some), ROWS):
                names, rows = zip(*some[i : i + ROWS], strict=True)
                kept[BLOCKS[-1]] = model.states(torch.tensor(rows))
                levels = [kept[block][:, 1:].float().mean(1) for block in BLOCKS]
                found |= dict(zip(names, torch.stack(levels, dim=1).clone(), strict=True))
    return found


def measure_linear(block: int, labelled: int, seed: int) -> dict[str, float]:
    """Fit a linear head; return the shares right of both lists, and of the commands that choose.

    The vectors are centred on the labelled ones, and scaled to length 1.
    """
    lists = split(seed)
    learned = lists["learning"][:labelled]

    def described(some: Sequence[Any]) -> Tensor:
        return torch.stack([means()[x.said][BLOCKS.index(block)] for x in some])

    x, right = described(learned), intents.labels(learned)
    parts = {name: described(lists[name]) for name in ("choosing", *LISTS)}
    centre = x.mean(0)
    x, others = (F.normalize(y - centre, dim=-1) for y in (x, torch.cat([*parts.values()])))
    # a head with a penalty on its length has nothing outside the span of what it learns from
    span = torch.linalg.qr(x.T).Q
    found = {}
    for penalty in PENALTIES:
        scores = linear(x @ span, right, others @ span, penalty)
        pieces = scores.split([len(part) for part in parts.values()])
        found[penalty] = {
            name: share_right(piece, intents.labels(lists[name]))
            for name, piece in zip(parts, pieces, strict=True)
        }
    return max(found.values(), key=lambda shares: shares["choosing"])


def measure() -> dict[str, Any]:
    """Return the shares right by block and list: for each number of labels the seeds'."""
    torch.set_num_threads(1)
    runs = {block: by_labels(block, once, measure_linear) for block in BLOCKS}
    return {
        "settings": SETTINGS,
        "blocks": {
            str(block): {
                name: [[run[name] for run in seeds] for seeds in of]
                for name in ("choosing", *LISTS)
            }
            for block, of in runs.items()
        },
    }


def table(figures: dict[str, Any]) -> list[str]:
    """Sum the figures up in lines of text: a number for each seed."""
    return [
        f"block {block}, {name}, {labels} labels: " + " ".join(f"{share:.3f}" for share in seeds)
        for block, lists in figures["blocks"].items()
        for name in LISTS
        for labels, seeds in zip(figures["settings"]["labels"], lists[name], strict=True)
    ]
