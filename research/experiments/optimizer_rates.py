"""Lesson 10: AdamW and Muon at several rates each, in the steps that 341 seconds gave either.

All else is the ladder's rung with windows of 128 characters. What seeds change there, the ladder
says: three runs of Muon differ by 0.014.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from course_lib.instruments import results
from research.experiments.language_model import mean_loss, split
from research.experiments.recipes import adamw, by_steps, ladder, muon, train

LESSON = "10"
SEEDS = (0,)
RATES = {"AdamW": (0.001, 0.003, 0.006), "Muon": (0.005, 0.01, 0.02)}
STEPS = {"AdamW": 1090, "Muon": 840}  # as research/results/language_model.json has of 341 seconds
OPTIMIZERS = {"AdamW": adamw, "Muon": muon}
once = partial(results.once, "optimizer_rates", STEPS)  # what an ended run has measured is kept


def held_out_loss(name: str, rate: float, seed: int) -> float:
    """Return the loss in nats a character after training with this optimizer at this rate."""
    tokens, held_out, vocab = split()
    rung = replace(ladder()["windows"], optimizers=partial(OPTIMIZERS[name], rate=rate))
    predictor, _ = train(rung, tokens, len(vocab), by_steps(STEPS[name]), seed)
    return round(mean_loss(predictor, held_out), 4)


def measure() -> dict[str, Any]:
    """Return the losses by optimizer and rate."""
    torch.set_num_threads(1)
    losses: dict[str, dict[str, float]] = {name: {} for name in RATES}
    for name, rates in RATES.items():
        for rate in rates:
            run = partial(held_out_loss, name, rate, SEEDS[0])
            losses[name][str(rate)] = once(f"{name} {rate}, seed {SEEDS[0]}", run)
            print(f"{name} {rate}: {losses[name][str(rate)]}", flush=True)
    return {"steps": STEPS, "losses": losses}


def table(figures: dict[str, Any]) -> list[str]:
    """Return a line for each optimizer: the loss at each rate."""
    return [
        f"{name:6} " + "  ".join(f"{loss:.3f} at {rate}" for rate, loss in by_rate.items())
        for name, by_rate in figures["losses"].items()
    ]
