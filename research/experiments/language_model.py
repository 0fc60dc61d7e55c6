"""Lesson 10: what each step buys, from nanoGPT's settings on; and the model whose weights are kept.

Every rung gets the same seconds of the processor on one thread, its counting included, and adds
one idea to the rung before it. The loss is that of the held-out tenth, measured off the clock.
"""

import time
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from course_lib.corpus import NGrams, occurrences
from course_lib.data import shakespeare
from course_lib.instruments import results
from course_lib.instruments.weights import save_weights
from course_lib.pretrained import shakespeare_model
from research.experiments.recipes import Predictor, Rung, by_clock, ladder, train

LESSON = "10"
SEEDS = (0, 1, 2)
CHARACTERS = 1_115_394  # of the complete works: as many as tiny Shakespeare has
HELD_OUT = 0.1
SECONDS = 341.0
WRITTEN, TEMPERATURE = 200, 0.8  # characters of a sample

# a rate that is only tried beside another one has fewer runs
FEWER = {"windows": (0,), "windows_fast": (0,)}
KEPT, FIRST = "bfloat16", 10_000  # the rung whose weights are kept; so many characters test them

SETTINGS = {"characters": CHARACTERS, "seconds": SECONDS, "rungs": [*ladder()]}
once = partial(results.once, "language_model", SETTINGS)  # what an ended run has measured is kept


def mean_loss(predictor: Predictor, tokens: Tensor) -> float:
    """Return the mean loss in nats of all tokens but the first."""
    chances = predictor(tokens[:-1]).gather(-1, tokens[1:].unsqueeze(-1))
    return -chances.log().mean().item()


def write(predictor: Predictor, tokens: Tensor, count: int, seed: int) -> Tensor:
    """Write on, a token at a time, each drawn at the temperature TEMPERATURE."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        chances = predictor(tokens[-predictor.n :])[-1]
        drawn = torch.multinomial(chances ** (1 / TEMPERATURE), 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return tokens[-count:]


def text() -> str:
    """Return the characters that all rungs learn from and are measured on."""
    return shakespeare.complete_works()[:CHARACTERS]


def split() -> tuple[Tensor, Tensor, str]:
    """Return the tokens to learn from, those held out, and the vocabulary."""
    vocab = "".join(sorted(set(text())))
    numbers = {character: number for number, character in enumerate(vocab)}
    tokens = torch.tensor([numbers[character] for character in text()])
    cut = round((1 - HELD_OUT) * len(tokens))
    return tokens[:cut], tokens[cut:], vocab


def sample(predictor: Predictor, held_out: Tensor, vocab: str) -> str:
    """Return what it writes after the first held-out line, by a fixed seed."""
    line = 1 + held_out.tolist().index(vocab.index("\n"))
    return "".join(vocab[x] for x in write(predictor, held_out[:line], WRITTEN, seed=0).tolist())


def measure_counting() -> dict[str, Any]:
    """Count, plainly and as Kneser and Ney do; return losses, seconds and samples."""
    tokens, held_out, vocab = split()
    figures = {}
    for name, settings in {"plain": (5, occurrences), "kneser_ney": (7,)}.items():
        start = time.process_time()
        predictor = Predictor(NGrams(tokens, len(vocab), *settings), n=256)
        seconds = time.process_time() - start
        loss = round(mean_loss(predictor, held_out), 4)
        written = sample(predictor, held_out, vocab)
        figures[name] = {"loss": loss, "seconds": round(seconds, 1), "sample": written}
    return figures


def measure_one(rung: Rung, seed: int) -> dict[str, Any]:
    """Train one rung; return what it came to."""
    tokens, held_out, vocab = split()
    start = time.process_time()
    predictor, steps = train(rung, tokens, len(vocab), by_clock(SECONDS), seed)
    seconds = time.process_time() - start
    parameters = predictor.model.parameters() if isinstance(predictor.model, nn.Module) else ()
    return {
        "loss": round(mean_loss(predictor, held_out), 4),
        "training_loss": round(mean_loss(predictor, tokens[: len(held_out)]), 4),
        "seconds": round(seconds, 1),
        "steps": steps,
        "passes": round(steps * rung.batch * rung.n / len(tokens), 2),
        "parameters": sum(parameter.numel() for parameter in parameters),
        "sample": sample(predictor, held_out, vocab),
    }


def measure_weights() -> dict[str, Any]:
    """Train the rung KEPT once more and keep its weights; return what they came to in 16 bits."""
    tokens, held_out, vocab = split()
    rung = ladder()[KEPT]
    predictor, steps = train(rung, tokens, len(vocab), by_clock(SECONDS), SEEDS[0])
    save_weights(shakespeare_model.NAME, cast(nn.Module, predictor.model))
    loaded = Predictor(shakespeare_model.load(), rung.n)
    return {
        "steps": steps,
        "passes": round(steps * rung.batch * rung.n / len(tokens), 2),
        "trained": round(mean_loss(predictor, held_out), 4),
        "loss": round(mean_loss(loaded, held_out), 4),
        "loss_of_first": round(mean_loss(loaded, held_out[:FIRST]), 4),
        "sample": sample(loaded, held_out, vocab),
    }


def measure() -> dict[str, Any]:
    """Count, keep one model's weights, and train all rungs from one seed before the next."""
    torch.set_num_threads(1)
    counting = once("counting", measure_counting)
    weights = once("weights", measure_weights)
    rungs = {name: {"title": rung.title, "runs": {}} for name, rung in ladder().items()}
    for seed in SEEDS:
        for name, rung in ladder().items():
            if seed not in FEWER.get(name, SEEDS):
                continue
            run = once(f"{name}, seed {seed}", partial(measure_one, rung, seed))
            rungs[name]["runs"][str(seed)] = run
            print(f"{rung.title}, seed {seed}: {run['loss']} nats", flush=True)
    return {"seconds": SECONDS, "counting": counting, "weights": weights, "rungs": rungs}


def table(figures: dict[str, Any]) -> list[str]:
    """Return a line for each rung: its title, and the loss of each seed."""
    lines = [f"{'nats a character, held out':34} by seed"]
    for name, counted in figures["counting"].items():
        lines.append(f"{'counting, ' + name:34} {counted['loss']:.3f}")
    for rung in figures["rungs"].values():
        losses = "  ".join(f"{run['loss']:.3f}" for run in rung["runs"].values())
        lines.append(f"{rung['title']:34} {losses}")
    return lines
