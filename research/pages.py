"""What docs/RESULTS.md shows of the kept results: a table of each, and one line of the largest."""

from collections.abc import Callable
from statistics import mean
from typing import Any

from course_lib.instruments import results
from research import evaluation
from research.benchmarks import (
    blocks,
    classes,
    efficient,
    generation,
    on_gpu,
    pages,
    translation,
)
from research.experiments import attention, extrapolation, positions, unseen_distances

TABLES: dict[str, Callable[[Any], str]] = {
    "attention": attention.on_page,
    "positions": positions.on_page,
    "extrapolation": extrapolation.on_page,
    "unseen_distances": unseen_distances.on_page,
    "block_speed": blocks.table,
    "generation_speed": generation.table,
    "translation_speed": translation.table,
    "attention_speed": efficient.table,
    "attention_on_gpu": on_gpu.table,
    "class_growth": classes.table,
    "pages_cost": pages.table,
    "wrong_answers": evaluation.table,
}


def summary() -> list[str]:
    """Sum up in one line each: the proof of the components, of the exercises, and two lessons."""
    proof, spelling, places, reading = (
        results.load(name)["figures"]
        for name in ("verify", "attention", "positions", "unseen_distances")
    )
    error, gradient = (
        f"{max(x[kind] for x in proof['components']):.0e}" for kind in ("error", "gradient_error")
    )
    counts = [f"{x:,}" for x in proof["exercises"].values()]
    long = spelling["lengths"].index(12)
    share = {
        name: f"{100 * mean(run['accuracy'][long] for run in spelling[name]):.0f} %"
        for name in ("one vector", "attention")
    }
    far = {
        name: f"{mean(run['right'][-1] for run in runs):.2f}"
        for name, runs in places["before"].items()
    }

    def at(way: str, window: int = -1) -> str:
        return f"{mean(run[way][window] for run in reading['runs']):.2f}"

    return [
        f"- **Components**: {len(proof['components'])} comparisons with independent "
        f"implementations; the largest error is {error}, the largest gradient error {gradient}.",
        f"- **Exercises**: {counts[0]}, tried on {counts[1]} known mistakes, {counts[2]} right "
        f"answers in other styles, {counts[3]} mutants and {counts[4]} one-place edits; "
        f"{counts[5]} violations.",
        f"- **Attention**: of words with 12 letters, {share['attention']} are pronounced right, "
        f"with one context vector {share['one vector']}.",
        f"- **Positions**: a rotary language model trained on 32 characters: up to character 256 "
        f"its loss rises from {at('as it was', 0)} to {at('as it was')} nats; with distances above "
        f"31 read as 31, it is {at('clamped')}. One layer that names "
        f"the word before, at four times its length: rotary {far['rotary']} right with biases of "
        f"queries and keys, {far['rotary, no biases']} without.",
    ]
