"""Lesson 12: which size wins if the race also pays for the scores that the causal mask hides?"""

from course_lib.data import characters
from course_lib.instruments import isoflop, training
from course_lib.language_model import LanguageModel, cross_entropy
from course_lib.scaling import training_flops

LESSON = "12"
SEEDS = (0,)
BUDGET, WIDTHS = 3e10, (8, 12, 16, 24, 32)


def steps(d_model: int) -> int:
    """Return how many steps the budget pays for where a step costs what torch executes."""
    tokens = isoflop.BATCH * isoflop.CONTEXT
    # twice the context is twice the attention term: torch computes the hidden half, too
    context = 2 * isoflop.CONTEXT
    return round(
        BUDGET / training_flops(isoflop.size(d_model), tokens, isoflop.LAYERS, context, d_model)
    )


def next_loss(model, batch):
    """Return the mean loss of the next characters, in nats."""
    return cross_entropy(model(batch[0]), batch[1])


def run(d_model: int, seed: int) -> float:
    """Train the page's model of this width; return its held-out loss."""
    learning, held_out = characters.split()
    with training.seeded(seed):
        model = LanguageModel(
            isoflop.VOCAB, isoflop.LAYERS, d_model, max(1, d_model // 8), 4 * d_model,
            max_length=isoflop.CONTEXT,
        )  # fmt: skip
    batches = characters.batches(learning, isoflop.CONTEXT, isoflop.BATCH, seed)
    rate = 0.64 / d_model
    training.train(model, batches, next_loss, steps=steps(d_model), learning_rate=rate)
    unseen = next(characters.batches(held_out, isoflop.CONTEXT, 1024, 0))
    return next_loss(model, unseen).item()


def measure() -> dict:
    """Return the steps and the held-out losses by d_model."""
    return {
        "steps": {str(d): steps(d) for d in WIDTHS},
        "losses": {str(d): [run(d, seed) for seed in SEEDS] for d in WIDTHS},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"d_model = {d:2}: {figures['steps'][d]} steps, "
        + ", ".join(f"{loss:.3f}" for loss in losses)
        for d, losses in figures["losses"].items()
    ]
