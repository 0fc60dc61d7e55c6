"""Lesson 04: small language models, read at eight times the length that they were trained on.

Each curve comes twice: with the whole text shown, and with its last N characters alone.
"""

from functools import partial
from statistics import mean

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.data import characters
from course_lib.instruments import training
from course_lib.instruments.position_models import (
    D_MODEL,
    HEADS,
    LAYERS,
    CausalModel,
    SlopedHeads,
    next_token_loss,
)
from course_lib.instruments.position_schemes import (
    NoPositions,
    Relative,
    Rotary,
    Sinusoidal,
    interpolated,
)
from course_lib.positions import rotary

LESSON = "04"
SEEDS = (0, 1, 2)
N, LONGEST = 32, 256  # characters: trained on, read
SIZES = {"layers": LAYERS, "d_model": D_MODEL, "heads": HEADS}
BATCH, STEPS = 32 * N, 600  # characters a step
RATES = (0.0025, 0.005, 0.01, 0.02, 0.04)  # the best is chosen on seed 0, by the first N places
TESTED, WINDOW, EVERY = 128, 16, 2  # texts; places that share a mean; every second place counts
SHOWN = (1, 2, 4, 8, 16, 32)  # characters before the last place


SCHEMES = {
    "none": NoPositions,
    "sinusoidal": Sinusoidal,
    "Shaw": lambda: Relative(8, D_MODEL // HEADS),
    "ALiBi": SlopedHeads,
    "rotary": Rotary,
    "rotary, base 500,000": lambda: Rotary(partial(rotary, base=500_000.0)),
    "rotary, trained on 256": Rotary,
}
REPAIRED = "rotary, slow pairs interpolated"


def train(scheme: str, rate: float, seed: int) -> CausalModel:
    """Train one model; all read as many characters a step."""
    n = LONGEST if scheme.endswith(str(LONGEST)) else N
    with training.seeded(seed):
        model = CausalModel(SCHEMES[scheme](), len(characters.vocab()))
    batches = characters.batches(characters.split()[0], n, BATCH // n, seed)
    training.train(model, batches, next_token_loss, steps=STEPS, learning_rate=rate, seed=seed)
    return model


def texts() -> Tensor:
    """Return held-out texts, of LONGEST characters and one more."""
    _, text = characters.split()
    starts = torch.arange(TESTED).unsqueeze(-1) * (len(text) // TESTED - LONGEST)
    return text[starts + torch.arange(LONGEST + 1)]


def averaged(loss: Tensor) -> list[float]:
    """Average over texts, and over the places of each window."""
    return loss.mean(0).view(-1, WINDOW // EVERY).mean(-1).tolist()


@torch.no_grad()
def all_shown(model: CausalModel) -> list[float]:
    """Return the loss by place, with all characters before it shown."""
    tokens = texts()
    loss = F.cross_entropy(model(tokens[:, :-1]).mT, tokens[:, 1:], reduction="none")
    return averaged(loss[:, EVERY - 1 :: EVERY])


@torch.no_grad()
def last_shown(model: CausalModel, shown: int, first: int = 0) -> list[float]:
    """Return the loss by place from `first` on, with the last `shown` characters before it."""
    tokens = texts()
    windows = tokens.unfold(1, shown + 1, 1)[:, first + EVERY - shown :: EVERY]
    loss = [
        F.cross_entropy(model(text[:, :-1])[:, -1], text[:, -1], reduction="none")
        for text in windows
    ]
    return averaged(torch.stack(loss))


def measure_one(scheme: str, rate: float, seed: int) -> dict[str, dict]:
    """Train one model, and read with it; with rotary positions, interpolated as well."""
    model = train(scheme, rate, seed)
    found = {scheme: read(model)}
    if scheme == "rotary":
        vars(model.scheme)["turn"] = partial(interpolated, stretch=LONGEST / N, trained=N)
        found[REPAIRED] = read(model)
    return found


def read(model: CausalModel) -> dict:
    """Return the two curves, and the loss of the last places by how much is shown."""
    last = LONGEST - 2 * WINDOW
    return {
        "all": all_shown(model),
        "last": last_shown(model, N, N),
        "by shown": [sum(last_shown(model, n, last)) / 2 for n in SHOWN],
    }


def measure() -> dict:
    """Return the loss by place, for each scheme, at its best learning rate."""
    swept = {
        scheme: [sum(all_shown(train(scheme, rate, 0))[: N // WINDOW]) for rate in RATES]
        for scheme in SCHEMES
    }
    best = {name: RATES[min(range(len(RATES)), key=row.__getitem__)] for name, row in swept.items()}
    runs = [
        {name: x for scheme in SCHEMES for name, x in measure_one(scheme, best[scheme], s).items()}
        for s in SEEDS
    ]
    return {
        "trained on": N,
        "window": WINDOW,
        "shown": list(SHOWN),
        "settings": {"sizes": SIZES, "steps": STEPS, "characters a step": BATCH, "tested": TESTED},
        "rates": {"tried": list(RATES), "loss": swept, "best": best},
        "runs": {name: [run[name] for run in runs] for name in runs[0]},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    places = (32, 64, 128, 256)
    head = "".join(f"{place:7}" for place in places)
    lines = [f"{'loss up to place':33}{head}   the same, last {N} shown"]
    for name, runs in figures["runs"].items():
        at = [place // WINDOW - 1 for place in places]
        means = [sum(run["all"][i] for run in runs) / len(runs) for i in at]
        late = [sum(run["last"][i - N // WINDOW] for run in runs) / len(runs) for i in at[1:]]
        columns = "".join(f"{mean:7.2f}" for mean in means)
        lines.append(f"{name:33}{columns}   " + "".join(f"{mean:7.2f}" for mean in late))
    return lines


def on_page(figures: dict) -> str:
    """Return the table of docs/RESULTS.md: the loss near a character, however much is shown."""
    places = (32, 64, 128, 256)
    head = " | ".join(map(str, places))
    lines = [f"| nats near character | {head} | {LONGEST}, last {N} shown |"]
    lines.append("|:-|-:|-:|-:|-:|-:|")
    for name, runs in figures["runs"].items():
        losses = [mean(run["all"][place // WINDOW - 1] for run in runs) for place in places]
        losses.append(mean(run["last"][-1] for run in runs))
        lines.append(f"| {name} | {' | '.join(f'{loss:.2f}' for loss in losses)} |")
    return "\n".join(lines)
