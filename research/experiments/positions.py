"""Lesson 04: every scheme of positions in one small model, read at longer lengths than trained."""

from statistics import mean

import torch

from course_lib.data import trees
from course_lib.instruments import training
from course_lib.instruments.position_schemes import (
    Alibi,
    Dependency,
    Learned,
    NoPositions,
    Reader,
    Relative,
    Rotary,
    Sinusoidal,
    answers,
    naming_loss,
)

LESSON = "04"
SEEDS = (0, 1, 2)
N, LENGTHS = 16, (16, 32, 64)
SETTINGS = {"batch": 32, "steps": 500, "learning_rate": 0.01, "d_model": 64}
D = SETTINGS["d_model"]
SCHEMES = {
    "none": NoPositions,
    "sinusoidal": Sinusoidal,
    "learned": lambda: Learned(max(LENGTHS), D),
    "relative": lambda: Relative(8, D),
    "dependency": lambda: Dependency(4, D),
    "rotary": Rotary,
    "alibi": Alibi,
    "none, causal": NoPositions,
    "alibi, causal": Alibi,
}
# queries and keys without biases
BARE = {f"{name}, no biases": SCHEMES[name] for name in ("sinusoidal", "relative", "rotary")}


def texts() -> tuple[trees.Text, trees.Text, int]:
    """Return the third act to train on, the fourth to test on, and the size of the vocabulary."""
    learning, held_out = (trees.documents()[f"Julius Caesar, act {act}"] for act in ("III", "IV"))
    vocab = trees.vocab(learning + held_out)
    return trees.join(learning, vocab), trees.join(held_out, vocab), len(vocab)


def measure_one(scheme: str, wanted: str, seed: int) -> dict[str, float | list[float]]:
    """Train one reader to name the word `before` or the one of `heads`; test it at each length."""
    learning, held_out, vocab = texts()
    with training.seeded(seed):
        model = Reader((SCHEMES | BARE)[scheme](), vocab, D, causal=scheme.endswith("causal"))
    if scheme in BARE:
        for layer in (model.query, model.key):
            layer.register_parameter("bias", None)
    history = training.train(
        model,
        trees.batches(learning, getattr(learning, wanted), N, SETTINGS["batch"], seed),
        naming_loss,
        steps=SETTINGS["steps"],
        learning_rate=SETTINGS["learning_rate"],
        seed=seed,
    )
    shares = [shares_right(model, held_out, wanted, n) for n in LENGTHS]
    right, beside = map(list, zip(*shares, strict=True))
    return {
        "right": right,
        "beside": beside,
        "loss": sum(history.losses[-20:]) / 20,
        "seconds": history.seconds,
    }


def shares_right(model: Reader, text: trees.Text, wanted: str, n: int) -> tuple[float, float]:
    """Return the shares of words that name the wanted word, and that name one of their neighbours.

    The first and the last word of each stretch have one neighbour, and do not count for the second.
    """
    starts = torch.arange(0, len(text.words) - n + 1, n)
    batch = words, _, names = trees.stretches(text, getattr(text, wanted), starts, n)
    said = answers(model, batch)
    beside = (said[:, 1:-1] == words[:, :-2]) | (said[:, 1:-1] == words[:, 2:])
    return (said == names)[names >= 0].float().mean().item(), beside.float().mean().item()


def measure() -> dict:
    """Return the shares of right answers, for both questions and all schemes."""
    figures: dict = {"lengths": list(LENGTHS), "settings": SETTINGS}
    for wanted, schemes in (("before", SCHEMES | BARE), ("heads", SCHEMES)):
        figures[wanted] = {
            scheme: [measure_one(scheme, wanted, seed) for seed in SEEDS] for scheme in schemes
        }
    return figures


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"{'':24}" + "".join(f"{n:>7}" for n in LENGTHS) + " words, and beside"]
    for wanted in ("before", "heads"):
        lines.append(wanted)
        for scheme, runs in figures[wanted].items():
            shares = [run["right"] + run["beside"] for run in runs]
            means = [sum(column) / len(runs) for column in zip(*shares, strict=True)]
            lines.append(f"{scheme:24}" + "".join(f"{mean:7.2f}" for mean in means))
    return lines


def on_page(figures: dict) -> str:
    """Return the table of docs/RESULTS.md: how far the schemes reach that name the word before."""
    lines = [f"| words read | {' | '.join(map(str, figures['lengths']))} |", "|:-|-:|-:|-:|"]
    bare = ("relative, no biases", "rotary, no biases")
    for name in ("sinusoidal", "learned", "relative", "rotary", *bare):
        shares = map(mean, zip(*(run["right"] for run in figures["before"][name]), strict=True))
        lines.append(f"| {name} | {' | '.join(f'{share:.2f}' for share in shares)} |")
    return "\n".join(lines)
