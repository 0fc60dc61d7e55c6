"""Lesson 18's exploration: a small model learns from a larger one, or from the text alone.

Both read the same windows of Shakespeare: of the whole text, or of one page in fifty. From the text
the target of a place is the one character that follows. From the larger model, which has read all
of the training text, it is that model's distribution over all characters (Hinton et al. 2015).
"""

from functools import cache, partial

import torch
from torch import Tensor, nn

from course_lib.data import characters, shakespeare
from course_lib.instruments import results, training
from course_lib.language_model import LanguageModel, cross_entropy, examples
from course_lib.positions import LearnedPositions
from course_lib.pretrained import shakespeare_model
from course_lib.transformer import EncoderBlock

LESSON = "18_distillation"
SEEDS = (0, 1, 2)
CHARACTERS, HELD_OUT = 1_115_394, 0.1
WINDOW, STRIDE, BATCH, STEPS, RATE = 64, 16, 32, 400, 0.006
EVERY = 50  # steps between two looks at the held-out text
SIZES = (77, 2, 96, 4, 384, WINDOW)  # vocabulary, blocks, d_model, heads, d_ff, context
PAGE = 1_000  # characters: of a page
# one page of so many is read, what it is learned from, and the steps
ARMS = {
    "a fiftieth, from the text": (50, "text", STEPS),
    "a fiftieth, from the larger model": (50, "model", STEPS),
    "all, from the text": (1, "text", STEPS),
    "all, from the larger model": (1, "model", STEPS),
    "all, from the text, 600 steps": (1, "text", 600),
}
SETTINGS = {
    "arms": ARMS,
    "page": PAGE,
    "window": WINDOW,
    "stride": STRIDE,
    "batch": BATCH,
    "rate": RATE,
}


@cache
def text() -> tuple[Tensor, Tensor]:
    """Return the tokens to learn from, and the held-out ones."""
    whole = shakespeare.complete_works()[:CHARACTERS]
    tokens = characters.Characters(whole).encode(whole)
    cut = round((1 - HELD_OUT) * len(tokens))
    return tokens[:cut], tokens[cut:]


@cache
def teacher() -> nn.Module:
    """Load the larger model, which has learned from all of the training text."""
    return shakespeare_model.load(LanguageModel, EncoderBlock)


def student(seed: int) -> LanguageModel:
    """Make the small model, untrained."""
    with training.seeded(seed):
        return LanguageModel(*SIZES, positions=LearnedPositions, block=EncoderBlock)


@torch.no_grad()
def held_out_loss(model: nn.Module) -> float:
    """Return nats a character over the second halves of the held-out windows."""
    inputs, targets = examples(text()[1], WINDOW, WINDOW // 2)
    logits = torch.cat([model(x) for x in inputs.split(64)])
    half = WINDOW // 2
    return cross_entropy(logits[:, half:], targets[:, half:]).item()


def loss(model: nn.Module, batch: tuple[Tensor, Tensor], source: str) -> Tensor:
    """Return the cross-entropy to the characters that follow, or to the teacher's distribution."""
    inputs, targets = batch
    if source == "text":
        return cross_entropy(model(inputs), targets)
    with torch.no_grad():
        wanted = teacher()(inputs).softmax(-1)
    return -(wanted * model(inputs).log_softmax(-1)).sum(-1).mean()


def trained(arm: str, seed: int) -> list[float]:
    """Train a student, and return its held-out loss after every EVERY steps."""
    one_of, source, steps = ARMS[arm]
    pages = text()[0].unfold(0, PAGE, one_of * PAGE)
    cut = [examples(page, WINDOW, STRIDE) for page in pages]
    inputs, targets = (torch.cat(x) for x in zip(*cut, strict=True))
    model, generator = student(seed), torch.Generator().manual_seed(seed)
    losses = []

    def batches():
        for step in range(steps):
            if step and step % EVERY == 0:
                losses.append(held_out_loss(model))
            drawn = torch.randint(len(inputs), (BATCH,), generator=generator)
            yield inputs[drawn], targets[drawn]

    settings = {"steps": steps, "learning_rate": RATE}
    training.train(model, batches(), partial(loss, source=source), **settings)
    return [*losses, held_out_loss(model)]


def measure() -> dict:
    """Return the held-out losses along the way of every arm and seed, and the teacher's."""
    runs = {
        arm: [
            results.once("distillation", SETTINGS, f"{arm}, {seed}", partial(trained, arm, seed))
            for seed in SEEDS
        ]
        for arm in ARMS
    }
    return {"settings": SETTINGS, "every": EVERY, "runs": runs, "teacher": held_out_loss(teacher())}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text: the last loss, and the best along the way."""
    lines = [f"{'held-out nats a character':40}{'last':>7}{'best':>7}"]
    for arm, runs in figures["runs"].items():
        last, best = (sum(x) / len(runs) for x in ([r[-1] for r in runs], map(min, runs)))
        lines.append(f"{arm:40}{last:7.2f}{best:7.2f}")
    return [*lines, f"{'the larger model itself':40}{figures['teacher']:7.2f}"]
