"""Lessons 01 and 02: is one vector too small, or was the training too short?

One vector of 64 (as the decoder's first state, or given to each of its steps), one of 256, and
attention over states of 64 or of 256, each after 1,500, 3,000 and 6,000 steps. In the last three
models the one vector of 256 passes through 256, 64 or 16 numbers on its way to the decoder: two
more layers, of which only the width between them differs.
"""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.attention import attend
from course_lib.data import spelling
from course_lib.files.paths import ROOT
from course_lib.instruments import results
from course_lib.seq2seq import Encoded, Seq2Seq
from research.experiments import spelling_models
from research.experiments.spelling_models import LENGTHS, SETTINGS

LESSON = "01"
SEEDS = (0, 1, 2)
NARROW, WIDE = 64, 256
RATES = {NARROW: (0.005, 0.01, 0.02, 0.04), WIDE: (0.005, 0.01, 0.02)}
FEW, HALF, LONG = 1500, 3000, 6000  # steps


class Squeezed(Seq2Seq):
    """A model whose one vector passes through `neck` numbers on its way to the decoder."""

    def __init__(
        self, source_vocab: int, target_vocab: int, *, d_hidden: int, neck: int, **settings: Any
    ):
        super().__init__(source_vocab, target_vocab, d_hidden=d_hidden, **settings)
        self.squeeze = nn.Sequential(nn.Linear(d_hidden, neck), nn.Linear(neck, d_hidden))

    def _encode(self, source: Tensor) -> Encoded:
        encoded = super()._encode(source)
        return encoded._replace(context=self.squeeze(encoded.context))


# what `spelling_models.trained` is asked for
ARMS = {
    "one vector of 64": lambda: {"d_hidden": NARROW},
    "64 at every step": lambda: {"d_hidden": NARROW, "context": "every"},
    "attention, 64": lambda: {"d_hidden": NARROW, "attend": attend},
    "one vector of 256": lambda: {"d_hidden": WIDE},
    "attention, 256": lambda: {"d_hidden": WIDE, "attend": attend},
    "256 through 256": lambda: {"d_hidden": WIDE, "kind": Squeezed, "neck": 256},
    "256 through 64": lambda: {"d_hidden": WIDE, "kind": Squeezed, "neck": 64},
    "256 through 16": lambda: {"d_hidden": WIDE, "kind": Squeezed, "neck": 16},
}


def measure() -> dict:
    """Return the loss of each learning rate, and the runs at the best: arm, steps, seeds."""
    sweep: dict[str, dict[str, float]] = {}
    runs: dict[str, dict[str, list]] = {arm: defaultdict(list) for arm in ARMS}
    rates: dict[str, float] = {}
    for seed in SEEDS:
        for arm, parts in ARMS.items():
            if seed == SEEDS[0]:
                # the held-out accuracy after few steps chooses the rate, for every other run too
                tried = RATES[parts()["d_hidden"]]
                sweep[arm] = {str(rate): _mean(_run(arm, seed, FEW, rate)) for rate in tried}
                rates[arm] = max(tried, key=lambda rate: sweep[arm][str(rate)])
            for steps in (FEW, HALF, LONG):
                runs[arm][str(steps)].append(_run(arm, seed, steps, rates[arm]))
    return {
        "lengths": LENGTHS,
        "words": spelling_models.words_by_length(),
        "settings": SETTINGS,
        "sweep": sweep,
        "rate": rates,
        "runs": runs,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    runs = {
        f"{arm}, {int(steps):,}": seeds
        for arm, of in figures["runs"].items()
        for steps, seeds in of.items()
    }
    rates = [f"{arm}: rate {rate}" for arm, rate in figures["rate"].items()]
    return [*spelling_models.rows(runs), "", *rates]


def _run(arm: str, seed: int, steps: int, rate: float) -> dict:
    """Train one model, or return what an interrupted experiment has kept of it."""

    def train() -> dict:
        budget = {"steps": steps, "learning_rate": rate}
        model, history = spelling_models.trained(seed, ARMS[arm], **budget)
        if seed == SEEDS[0] and steps > FEW:
            folder = ROOT / "build" / "models"
            folder.mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), folder / f"{arm}, {steps}.pt")
        return spelling_models.figures(model, history) | {"learned": _learned(model)}

    settings = [LENGTHS, SETTINGS, NARROW, WIDE]
    return results.once("bottleneck", settings, f"{arm}, {steps}, {rate}, seed {seed}", train)


def _learned(model: Seq2Seq) -> list[float]:
    """Return the accuracy at each length on a tenth of the words that the model was trained on."""
    learning, _ = spelling.split()
    words = {*sorted({word for word, _ in learning})[::10]}
    return spelling.accuracy_by_length(model, [one for one in learning if one[0] in words], LENGTHS)


def _mean(run: dict) -> float:
    """Return the accuracy on all held-out words of LENGTHS."""
    words = torch.tensor(spelling_models.words_by_length(), dtype=torch.float64)
    return (words @ torch.tensor(run["accuracy"], dtype=torch.float64) / words.sum()).item()
