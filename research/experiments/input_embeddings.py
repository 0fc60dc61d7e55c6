"""Lesson 16: do the blocks of a pretrained encoder help, or its table of words alone?

A control of `pretraining`, with its commands, lists, penalties and seeds: a linear head on the mean
of MiniLM's own input embeddings, without any block.
"""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from course_lib.instruments import intents
from course_lib.real_models import mean_pool
from research.experiments.few_labels import linear, share_right
from research.experiments.pretraining import (
    LABELS,
    LISTS,
    PENALTIES,
    SEEDS,
    encoder,
    in_parts,
    split,
)

LESSON = "16"


def embedded(texts: Sequence[str]) -> Float[Tensor, "batch 384"]:
    """Describe each sentence by the mean of its tokens' input embeddings, scaled to length 1."""
    tokens, mask = encoder().tokens(texts)
    return F.normalize(mean_pool(encoder().words(tokens), mask.squeeze(-2)), dim=-1)


def measure_linear(labelled: int, seed: int) -> dict[str, float]:
    """Fit a linear head to input embeddings; return the shares right of both lists."""
    lists = split(seed)
    learned = lists["learning"][:labelled]
    x, right = in_parts(embedded, learned), intents.labels(learned)
    others = {name: in_parts(embedded, lists[name]) for name in ("choosing", *LISTS)}

    def share(name: str, penalty: float) -> float:
        return share_right(linear(x, right, others[name], penalty), intents.labels(lists[name]))

    best = max(PENALTIES, key=partial(share, "choosing"))
    return {name: share(name, best) for name in LISTS}


def measure() -> dict:
    """Return the shares right by list: for each number of labels the seeds'."""
    torch.set_num_threads(1)
    runs = [[measure_linear(labelled, seed) for seed in SEEDS] for labelled in LABELS]
    return {"labels": LABELS} | {
        name: [[run[name] for run in seeds] for seeds in runs] for name in LISTS
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text: a number for each seed."""
    return [
        f"{name}, {labels} labels: " + " ".join(f"{share:.3f}" for share in seeds)
        for name in LISTS
        for labels, seeds in zip(figures["labels"], figures[name], strict=True)
    ]
