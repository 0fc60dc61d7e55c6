"""Lesson 10: AdamW and Muon at several rates each, in the steps that 341 seconds gave either.

All else is the ladder's rung with windows of 128 characters, so this is its duel of the two
optimizers. Seed 0 tries every rate; the best of each optimizer gets two more seeds.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from course_lib.instruments import results
from experiments.language_model import mean_loss, split
from experiments.recipes import adamw, by_steps, ladder, muon, train

LESSON = "10"
SEEDS = (0, 1, 2)
RATES = {"Muon": (0.02, 0.01, 0.04), "AdamW": (0.003, 0.001, 0.006)}
STEPS = {"AdamW": 1090, "Muon": 840}  # as results/language_model.json has of 341 seconds
OPTIMIZERS = {"AdamW": adamw, "Muon": muon}
once = partial(results.once, "optimizer_rates", STEPS)  # what an ended run has measured is kept


def held_out_loss(name: str, rate: float, seed: int) -> float:
    """Return the loss in nats a character after training with this optimizer at this rate."""
    tokens, held_out, vocab = split()
    rung = replace(ladder()["windows"], optimizers=partial(OPTIMIZERS[name], rate=rate))
    predictor, _ = train(rung, tokens, len(vocab), by_steps(STEPS[name]), seed)
    return round(mean_loss(predictor, held_out), 4)


def measure() -> dict[str, Any]:
    """Return the losses by optimizer, rate and seed."""
    torch.set_num_threads(1)
    losses: dict[str, dict[str, dict[str, float]]] = {name: {} for name in RATES}

    def run(name: str, rate: float, seed: int) -> None:
        found = once(f"{name} {rate}, seed {seed}", partial(held_out_loss, name, rate, seed))
        losses[name].setdefault(str(rate), {})[str(seed)] = found
        print(f"{name} {rate}, seed {seed}: {found}", flush=True)

    for name, rates in RATES.items():
        for rate in rates:
            run(name, rate, SEEDS[0])
    for seed in SEEDS[1:]:
        for name, by_rate in losses.items():
            best = min(by_rate, key=lambda rate: by_rate[rate][str(SEEDS[0])])
            run(name, float(best), seed)
    return {"steps": STEPS, "losses": losses}


def table(figures: dict[str, Any]) -> list[str]:
    """Return a line for each optimizer and rate, with the loss of each seed."""
    return [
        f"{name:6} {rate:6} " + "  ".join(f"{loss:.3f}" for loss in by_seed.values())
        for name, by_rate in figures["losses"].items()
        for rate, by_seed in by_rate.items()
    ]
