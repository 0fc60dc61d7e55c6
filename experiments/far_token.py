"""Lesson 04: a letter that was read long ago, from beyond the length that was trained on.

A text of random letters has one mark, "!", before one letter. At each "?" behind it the model must
name that letter. So it needs order (which letter follows the mark?) and reach.
"""

from functools import partial
from itertools import pairwise

from course_lib.instruments import training
from course_lib.instruments.position_models import (
    LETTERS,
    CausalModel,
    answers,
    marked,
    naming_loss,
)
from course_lib.instruments.position_schemes import NoPositions, Rotary, interpolated
from course_lib.positions import rotary

LESSON = "04"
SEEDS = (0, 1, 2)
N, LONGEST = 32, 256  # tokens: trained on, read
BATCH = 32 * N  # tokens a step
TRAINING = {"steps": 800, "learning_rate": 0.005}
TUNING = {"steps": 50, "learning_rate": 0.001}  # on LONGEST tokens
FULL = {"steps": 400, "learning_rate": 0.005}  # on 32 texts of LONGEST tokens a step
TESTED = 256
PLACES = (0, N, 4 * N, LONGEST)  # where shares begin and end
WAYS: dict[str, Rotary] = {
    "as it was": Rotary(),
    "all pairs interpolated": Rotary(partial(interpolated, stretch=LONGEST / N)),
    "slow pairs interpolated": Rotary(partial(interpolated, stretch=LONGEST / N, trained=N)),
    "base 500,000": Rotary(partial(rotary, base=500_000.0)),
    "distances clamped": Rotary(clamp=N - 1),
}


def shares(model: CausalModel, shown: int = LONGEST) -> list[float]:
    """Return the shares right between PLACES, with the last `shown` tokens before each place."""
    tokens, wanted = next(marked(LONGEST, TESTED, seed=1000, first=N // 4))
    said = answers(model, tokens, shown)
    right = [(said == wanted)[:, a:b][wanted[:, a:b] >= 0] for a, b in pairwise(PLACES)]
    return [share.float().mean().item() for share in right]


def new(scheme: NoPositions, seed: int) -> CausalModel:
    """Return a model that is not trained yet."""
    with training.seeded(seed):
        return CausalModel(scheme, LETTERS + 2)


def train(model: CausalModel, n: int, size: int, seed: int, settings: dict) -> None:
    """Train on texts of n tokens, so many a step."""
    batches = marked(n, size, seed, n // 4)
    training.train(model, batches, naming_loss, seed=seed, **settings)


def measure_one(seed: int) -> dict[str, list[float]]:
    """Train one model, read far with it in every way, and train two rivals."""
    model = new(Rotary(), seed)
    train(model, N, BATCH // N, seed, TRAINING)
    found = {"as it was, last 32 shown": shares(model, N)}
    learned = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, way in WAYS.items():
        model.load_state_dict(learned)
        model.scheme.turn, model.scheme.clamp = way.turn, way.clamp
        found[name] = shares(model)
        train(model, LONGEST, BATCH // LONGEST, seed + 100, TUNING)
        found[f"{name}, {TUNING['steps']} steps"] = shares(model)
    found["trained on 256"] = shares(full_length(seed))
    model = new(NoPositions(), seed)
    train(model, N, BATCH // N, seed, TRAINING)
    found["no positions"] = shares(model)
    return found


def full_length(seed: int) -> CausalModel:
    """Train a rotary model on long texts alone, with eight times the tokens a step."""
    model = new(Rotary(), seed)
    train(model, LONGEST, BATCH // N, seed, FULL)
    return model


def measure() -> dict:
    """Return the shares right, by way of reading and by place."""
    runs = [measure_one(seed) for seed in SEEDS]
    return {
        "places": list(PLACES),
        "chance": 1 / LETTERS,
        "settings": {"training": TRAINING, "tuning": TUNING, "full": FULL, "tested": TESTED},
        "right": {name: [run[name] for run in runs] for name in runs[0]},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    ends = "".join(f"{place:7}" for place in figures["places"][1:])
    lines = [f"{'share right, up to place':33}{ends}"]
    for name, runs in figures["right"].items():
        means = [sum(column) / len(runs) for column in zip(*runs, strict=True)]
        lines.append(f"{name:33}" + "".join(f"{mean:7.2f}" for mean in means))
    return lines
