"""The small models from spelling to sound that lessons 01 and 02 compare."""

from collections.abc import Callable
from typing import Any

from course_lib.data import spelling
from course_lib.instruments import training
from course_lib.seq2seq import Seq2Seq, next_token_loss

LENGTHS = list(range(3, 15))  # letters
SETTINGS = {"d_embedding": 32, "d_hidden": 64, "batch": 128, "steps": 1500, "learning_rate": 0.02}


def trained(
    seed: int,
    parts: Callable[[], dict[str, Any]] = dict,
    longest: int | None = None,
    **budget: float,
) -> tuple[Seq2Seq, training.History]:
    """Train one model with a bidirectional encoder, on words of `longest` letters at most.

    `parts()`, called under the seed, are arguments of its class beside those of SETTINGS, and
    `kind`, the class, where it is not `Seq2Seq`. `budget` has other steps or another learning
    rate than SETTINGS.
    """
    asked_for: dict[str, Any] = {x: SETTINGS[x] for x in ("steps", "learning_rate")} | budget
    learning, _ = spelling.split()
    learning = [pair for pair in learning if longest is None or len(pair[0]) <= longest]
    sizes = {name: SETTINGS[name] for name in ("d_embedding", "d_hidden")}
    with training.seeded(seed):
        asked = sizes | parts()
        kind = asked.pop("kind", Seq2Seq)
        model = kind(len(spelling.LETTERS), len(spelling.SOUNDS), bidirectional=True, **asked)
    history = training.train(
        model,
        spelling.batches(learning, SETTINGS["batch"], seed),
        next_token_loss,
        **asked_for,
    )
    return model, history


def measure(
    seed: int, parts: Callable[[], dict[str, Any]] = dict, longest: int | None = None
) -> dict[str, float | list[float]]:
    """Train one model; return its `figures`."""
    return figures(*trained(seed, parts, longest))


def figures(model: Seq2Seq, history: training.History) -> dict[str, float | list[float]]:
    """Return a trained model's accuracy at each length, its last losses and its speed."""
    _, held_out = spelling.split()
    return {
        "accuracy": spelling.accuracy_by_length(model, held_out, LENGTHS),
        "loss": sum(history.losses[-100:]) / 100,
        "seconds": history.seconds,
        "steps_per_second": history.steps / history.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def words_by_length() -> list[int]:
    """Count the held-out words of each length."""
    _, held_out = spelling.split()
    words = {word for word, _ in held_out}
    return [sum(len(word) == length for word in words) for length in LENGTHS]


def rows(runs: dict[str, list[dict]]) -> list[str]:
    """Lay out each run's accuracy by length, in percent, and its speed."""
    lines = ["letters              " + "".join(f"{length:5}" for length in LENGTHS) + "   steps/s"]
    for name, seeds in runs.items():
        for seed, run in enumerate(seeds):
            shares = "".join(f"{100 * share:5.0f}" for share in run["accuracy"])
            speed = f"{run['steps_per_second']:10.1f}" if "steps_per_second" in run else ""
            lines.append(f"{name:13}seed {seed:2} {shares}{speed}")
    return lines
