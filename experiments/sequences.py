"""Lesson 08: a small Transformer copies, reverses and sorts letters that it has never seen so.

Two controls are beside the tasks. A sorted answer can be guessed better than another: so the same
is asked of copying sources that are sorted already, and of sorting by a secret alphabet. And the
norms are in the order of 2017, with the other order beside it.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.decoder import DecoderBlock
from course_lib.instruments import results, training
from course_lib.instruments.recording import record_weights
from course_lib.masks import causal_mask, shift_right
from course_lib.transformer import Transformer, greedy

LESSON = "08"
SEEDS = (0, 1, 2)

LETTERS, N = 26, 8
START, STOP = LETTERS, LETTERS + 1
MODEL: dict[str, Any] = {"vocab": LETTERS + 2, "layers": 2, "d_model": 64, "heads": 4, "d_ff": 256}
TRAINING = {"batch": 32, "steps": 600}
RATE, RATES = 0.003, (0.001, 0.003, 0.01)
TESTED = 1000  # sequences, of which hardly one has been seen: there are 26 x 25 x ... x 19

SECRET = torch.randperm(LETTERS, generator=torch.Generator().manual_seed(26))  # a letter's place


class Arm(NamedTuple):
    """What is read, what is to be written, where the norms are, and the learning rates."""

    read: Callable[[int, torch.Generator], Tensor]
    write: Callable[[Tensor], Tensor]
    norm: Literal["post", "pre"] = "post"
    rates: tuple[float, ...] = RATES


def different(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight different letters."""
    return torch.rand(batch, LETTERS, generator=generator).argsort(-1)[:, :N]


def in_order(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight different letters, in alphabetical order."""
    return in_sorted(different(batch, generator))


def any_letters(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight letters, each of which may come again."""
    return torch.randint(0, LETTERS, (batch, N), generator=generator)


def repeating(batch: int, generator: torch.Generator) -> Tensor:
    """Draw sequences of eight letters, of which one at least comes again."""
    drawn = any_letters(8 * batch, generator)
    again = (in_sorted(drawn).diff(dim=-1) == 0).any(-1)
    return drawn[again][:batch]


def orders_of_repeating() -> float:
    """Return the mean logarithm of the number of orders that eight letters, drawn freely, have."""
    times = [math.comb(N, m) * (LETTERS - 1) ** (N - m) / LETTERS**N for m in range(N + 1)]
    alike = sum(share * math.lgamma(m + 1) for m, share in enumerate(times))
    return math.lgamma(N + 1) - LETTERS * alike


def copied(letters: Tensor) -> Tensor:
    """Return the letters as they are."""
    return letters


def in_reverse(letters: Tensor) -> Tensor:
    """Return the letters from the last to the first."""
    return letters.flip(-1)


def in_sorted(letters: Tensor) -> Tensor:
    """Return the letters in alphabetical order."""
    return letters.sort(-1).values


def by_the_secret(letters: Tensor) -> Tensor:
    """Return the letters in the order of the secret alphabet."""
    return letters.gather(-1, SECRET[letters].argsort(-1))


ARMS = {
    "copy": Arm(different, copied),
    "reverse": Arm(different, in_reverse),
    "sort": Arm(different, in_sorted),
    "copy, sorted already": Arm(in_order, copied),
    "sort, secret alphabet": Arm(different, by_the_secret),
    "copy, pre-norm": Arm(different, copied, "pre"),
    "reverse, pre-norm": Arm(different, in_reverse, "pre"),
    "sort, pre-norm": Arm(different, in_sorted, "pre"),
    "sort, letters repeat": Arm(any_letters, in_sorted, "post", (RATE,)),
}


def measure() -> dict:
    """Return, by arm, rate and seed, what is written right, looked at, and the losses."""
    settings = MODEL | TRAINING | {"rate": RATE, "rates": RATES}
    runs: dict = {}
    for seed in SEEDS:
        for rate in (RATE, *(rate for rate in RATES if rate != RATE)):
            for name, arm in ARMS.items():
                if rate in arm.rates:
                    by_rate = runs.setdefault(name, {}).setdefault(f"{rate:g}", [])
                    key = f"{name} {rate:g} {seed}"
                    found = results.once(
                        "sequences", settings, key, lambda x=(arm, seed, rate): run(*x)
                    )
                    by_rate.append(found)
                    print(key, found["right"], below(found), flush=True)
    return {
        "settings": settings,
        "tested": TESTED,
        "guess": {  # nats a letter, before the source is read
            "any order": (math.lgamma(LETTERS + 1) - math.lgamma(LETTERS - N + 1)) / N,
            "sorted": math.log(math.comb(LETTERS, N)) / N,
            "sorted, letters repeat": (N * math.log(LETTERS) - orders_of_repeating()) / N,
        },
        "runs": runs,
        "unshifted": [
            results.once("sequences", settings, f"unshifted {x}", lambda x=x: peeking(x))
            for x in SEEDS
        ],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for name, by_rate in figures["runs"].items():
        for rate, runs in by_rate.items():
            right = ", ".join(f"{run['right']:.1%}" for run in runs)
            steps = ", ".join(str(below(run)) for run in runs)
            again = ", ".join(f"{run['repeating']:.1%}" for run in runs)
            shown = f"{right} right; loss below 0.1 from step {steps}; letters repeat: {again}"
            lines.append(f"{name:21} at {rate:5}: {shown}")
    for name, by_rate in figures["runs"].items():
        for run in by_rate[f"{RATE:g}"]:
            looks = "; ".join(
                f"{key} {' '.join(f'{share:.3f}' for share in shares)}"
                for key, shares in run["looks"].items()
            )
            lines.append(f"{name:21} {looks}")
    for run in figures["unshifted"]:
        right = f"{run['right']:.1%} right, {run['one letter']:.1%} one letter"
        lines.append(f"sort, reads what it predicts: {right}; loss below 0.1 from {below(run)}")
    return lines


def below(run: dict, loss: float = 0.1) -> int | None:
    """Return the first step after which ten steps have a mean loss below this."""
    return next((10 * i for i, mean in enumerate(run["losses"]) if mean < loss), None)


def next_letter_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next letter, in nats."""
    source, target = batch
    scores = model(source, shift_right(target, START))
    return F.cross_entropy(scores.flatten(0, -2), target.flatten())


def peeking_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the loss of a program with a fault: all letters but the first are read before."""
    source, target = batch
    first = torch.full_like(target[..., :1], START)
    read = torch.cat([first, target[..., 1:]], dim=-1)
    return F.cross_entropy(model(source, read).flatten(0, -2), target.flatten())


def pairs(arm: Arm, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw batches of sources and targets without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        source = arm.read(TRAINING["batch"], generator)
        yield source, arm.write(source)


def peeking(seed: int) -> dict:
    """Train a sorter by the faulty loss; return what it writes right, and its mean losses."""
    arm, steps = ARMS["sort"], TRAINING["steps"]
    with training.seeded(seed):
        model = Transformer(**MODEL, max_length=N + 1)
    history = training.train(
        model, pairs(arm, seed), peeking_loss, steps=steps, learning_rate=RATE, seed=seed
    )
    source = different(TESTED, torch.Generator().manual_seed(1000))
    tenths = torch.tensor(history.losses).view(-1, 10).mean(-1)
    written = greedy(model, source, START, STOP, most=N)
    same = (written == written[:, :1]).all(-1).float().mean().item()
    right = share_right(model, arm, source)
    return {"right": right, "one letter": same, "losses": tenths.tolist()}


def run(arm: Arm, seed: int, rate: float) -> dict:
    """Train a model; return what it writes right, where it looks, and its mean losses."""
    with training.seeded(seed):
        model = Transformer(**MODEL, max_length=N + 1, norm=arm.norm)
    steps = TRAINING["steps"]
    history = training.train(
        model, pairs(arm, seed), next_letter_loss, steps=steps, learning_rate=rate, seed=seed
    )
    generator = torch.Generator().manual_seed(1000)
    source = arm.read(TESTED, generator)
    tenths = torch.tensor(history.losses).view(-1, 10).mean(-1)
    return {
        "right": share_right(model, arm, source),
        "repeating": share_right(model, arm, repeating(TESTED, generator)),
        "looks": looks(model, source, arm.write(source), generator),
        "losses": tenths.tolist(),
    }


def share_right(model: Transformer, arm: Arm, source: Tensor) -> float:
    """Return the share of sequences that are written without one mistake."""
    written = greedy(model, source, START, STOP, most=N)
    return (written == arm.write(source)).all(-1).float().mean().item()


@torch.no_grad()
def looks(
    model: Transformer, source: Tensor, target: Tensor, generator: torch.Generator
) -> dict[str, list[float]]:
    """Return, by decoder block, the shares of letters of which this is true:

    the largest weight of its cross-attention, averaged over the heads, is on the letter that is to
    be written; that letter is predicted where this block may not look at it; and where it may not
    look at another one, drawn at random.
    """
    wanted = source.unsqueeze(1) == target.unsqueeze(2)
    step = torch.randint(1, N, (len(source), N, 1), generator=generator)
    place = wanted.float().argmax(-1, keepdim=True)
    other = F.one_hot((place + step).squeeze(-1) % N, N).bool()
    found: dict[str, list[float]] = {"largest": [], "hidden": [], "another hidden": []}
    for i, layer in enumerate(model.decoder.blocks):
        block = cast(DecoderBlock, layer)
        with record_weights(block.cross_attention.sublayer.attention) as kept:
            model(source, shift_right(target, START))
        largest = kept[0].mean(1).argmax(-1, keepdim=True)
        found["largest"].append(wanted.gather(-1, largest).float().mean().item())
        for name, hidden in (("hidden", wanted), ("another hidden", other)):
            written = scores_without(model, source, target, i, ~hidden).argmax(-1)
            found[name].append((written == target).float().mean().item())
    return found


def scores_without(
    model: Transformer, source: Tensor, target: Tensor, number: int, mask: Tensor
) -> Tensor:
    """Return the logits where one decoder block's cross-attention has a mask."""
    memory, x = model.encoder(source), model.decoder.embedding(shift_right(target, START))
    for i, block in enumerate(model.decoder.blocks):
        x = block(x, memory, causal_mask(N), mask if i == number else None)
    return model.output(model.decoder.last_norm(x))
