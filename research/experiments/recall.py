"""Lesson 14: how many pairs of a key and a value can one attention head keep apart?"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.beyond import delta_rule_in_chunks
from course_lib.efficient.linear import linear_by_scan
from course_lib.efficient.linformer import Linformer
from course_lib.efficient.memory_compressed import MemoryCompressed
from course_lib.efficient.window import window_mask
from course_lib.instruments import recall, results, training
from course_lib.self_attention import scaled_dot_product_attention

LESSON = "14"
SEEDS = (0, 1, 2)

D_K = 16
PROJECTED, WIDTH, WINDOW = 16, 4, 16
PAIRS = (4, 16, 32, 64)
TRAINING = {"steps": 1000, "learning_rate": 0.005}
OTHER_RATES = (0.0015, 0.015)  # for the first seed, with most pairs
BATCH, EVERY = 32, 100

# one head with keys and values of these sizes
ROWS = dict.fromkeys(("dense", "linear", "Linformer", "memory-compressed"), (D_K, D_K))
# with most pairs only
ROWS_OF_MOST = {
    "window": (D_K, D_K),
    "random features, m = 16": (D_K, D_K),
    "random features, m = 64": (D_K, D_K),
    "random features, m = 256": (D_K, D_K),
    "delta rule": (D_K, D_K),
    "delta rule, beta = 0.05": (D_K, D_K),
    "linear, d_v = 32": (D_K, 2 * D_K),
    "linear, d_k = 32": (2 * D_K, D_K),
    "linear, d_k = 48": (3 * D_K, D_K),
    "linear, d_k = 64": (4 * D_K, D_K),
    "dense, 8 and 8": (8, 8),
    "dense, 8 and 4": (8, 4),
    "dense, 4 and 8": (4, 8),
    "dense, 2 and 8": (2, 8),
}


def measure() -> dict:
    """Return for each row and number of pairs the shares recalled on the way, by seed."""
    most = PAIRS[-1]
    runs = {}
    for name in (*ROWS, *ROWS_OF_MOST):
        every = PAIRS if name in ROWS else (most,)
        runs[name] = {str(n): [kept(name, n, seed) for seed in SEEDS] for n in every}
    return {
        "settings": TRAINING
        | {"d_k": D_K, "projected": PROJECTED, "width": WIDTH, "window": WINDOW, "every": EVERY},
        "pairs": list(PAIRS),
        "sizes": ROWS | ROWS_OF_MOST,
        "runs": runs,
        "other rates": {
            name: {str(rate): kept(name, most, SEEDS[0], rate)[-1] for rate in OTHER_RATES}
            for name in runs
        },
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = ["share of keys whose value is right, by pairs in the sequence and by seed"]
    for name, by_pairs in figures["runs"].items():
        for pairs, curves in by_pairs.items():
            shares = " ".join(f"{curve[-1]:.2f}" for curve in curves)
            half = " ".join(f"{curve[len(curve) // 2]:.2f}" for curve in curves)
            lines.append(f"{name:24} {pairs:>3}   {shares}   after half of the steps {half}")
    lines.append("the same with 64 pairs and the first seed, at other learning rates")
    for name, by_rate in figures["other rates"].items():
        lines.append(f"{name:24} " + "  ".join(f"{k}: {share:.2f}" for k, share in by_rate.items()))
    return lines


def kept(name: str, pairs: int, seed: int, rate: float = TRAINING["learning_rate"]) -> list[float]:
    """Train one head, or read what an interrupted call of this experiment has kept of it."""
    key = f"{name} {pairs} {seed} {rate}"
    return results.once("recall", TRAINING, key, lambda: run(name, pairs, seed, rate))


def rule_of(name: str, pairs: int, d_k: int) -> Callable[..., Tensor]:
    """Return how a row attends to sequences of so many pairs."""
    if name.startswith("linear"):
        return linear_by_scan
    if name == "Linformer":
        return Linformer(pairs, PROJECTED)
    if name == "memory-compressed":
        return MemoryCompressed(d_k, WIDTH)
    if name == "window":
        return partial(F.scaled_dot_product_attention, attn_mask=window_mask(pairs, WINDOW))
    if name.startswith("random features"):
        return partial(random_features, directions=torch.randn(int(name.split()[-1]), d_k))
    if name.startswith("delta rule"):
        return partial(store_and_read, beta=float(name.partition("= ")[2] or 1))
    return scaled_dot_product_attention


def random_features(q: Tensor, k: Tensor, v: Tensor, directions: Tensor) -> Tensor:
    """Attend by phi(q) . phi(k), which is exp(q . k / sqrt(d)) in the mean over directions w.

    phi(x) = exp(w . x - |x|^2 / 2), after q and k are divided by d^(1/4). The largest exponent is
    subtracted, for the keys one in all, for each query its own: both cancel. Source: Choromanski et
    al. 2021, lemma 1, without their orthogonal directions.
    """
    powers = []
    for x in (q, k):
        x = x / x.shape[-1] ** 0.25
        powers.append(x @ directions.T - x.square().sum(-1, keepdim=True) / 2)
    queries = (powers[0] - powers[0].detach().amax(-1, keepdim=True)).exp()
    keys = (powers[1] - powers[1].detach().amax((-2, -1), keepdim=True)).exp()
    total = (queries @ keys.sum(-2).unsqueeze(-1)).clamp(min=1e-30)
    return queries @ (keys.mT @ v) / total


def store_and_read(q: Tensor, k: Tensor, v: Tensor, beta: float) -> Tensor:
    """Store the pairs one after another by the delta rule; read all queries from the last state."""
    keys = F.normalize(torch.cat([k, torch.ones_like(q)], dim=-2), dim=-1)
    queries = torch.cat([torch.zeros_like(k), q], dim=-2)
    values = torch.cat([v, v.new_zeros(*q.shape[:-1], v.shape[-1])], dim=-2)
    # a query writes nothing
    share = torch.cat([v.new_full(k.shape[:-1], beta), v.new_zeros(q.shape[:-1])], dim=-1)
    return delta_rule_in_chunks(queries, keys, values, share)[..., -q.shape[-2] :, :]


def run(name: str, pairs: int, seed: int, rate: float) -> list[float]:
    """Train one head; return the share recalled after 0, 100, 200, ... steps."""
    with training.seeded(seed):
        d_k, d_v = (ROWS | ROWS_OF_MOST)[name]
        model = recall.Head(d_k, d_v, rule_of(name, pairs, d_k))
    curve, drawn = [], recall.sequences(pairs, BATCH, seed)

    def batches() -> Iterator[recall.Pairs]:
        for step in range(TRAINING["steps"]):
            if step % EVERY == 0:
                curve.append(recall.share_right(model, pairs))
            yield next(drawn)

    budget: dict[str, Any] = TRAINING | {"learning_rate": rate}
    training.train(model, batches(), recall.loss, **budget)
    return [*curve, recall.share_right(model, pairs)]
