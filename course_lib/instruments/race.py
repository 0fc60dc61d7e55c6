"""A race of language models: a minute to learn, then a text that was never seen (lesson 10).

`learn(text, seconds)` returns `predict`, and `predict(text)` returns probabilities: row i is for
the character after text[i], given text[: i + 1], and the columns are the sorted characters.
"""

import time
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from course_lib.data import shakespeare
from course_lib.instruments import results

Predict = Callable[[str], Float[Tensor, "n vocab"]]
Learn = Callable[[str, float], Predict]

CHARACTERS = 1_115_394  # of the complete works: as many as tiny Shakespeare has
HELD_OUT = 0.1
SECONDS = 60.0  # of the processor, for `learn`
STRETCH = 256  # characters of a question; the second half is scored


def run(learn: Learn) -> None:
    """Let `learn` take part, and print its held-out loss beside the published ones.

    Raises ValueError for what are no probabilities, or depend on later characters.
    """
    loss, seconds = measured(learn)
    entries = [*results.load("race")["figures"].values()]
    entries.append({"loss": loss, "seconds": seconds, "title": "yours, now"})
    for entry in sorted(entries, key=lambda entry: entry["loss"]):
        print(f"{entry['loss']:.3f} nats after {entry['seconds']:4.1f} s: {entry['title']}")


def measured(learn: Learn) -> tuple[float, float]:
    """Return the held-out loss, and the seconds of the processor that learning took."""
    text = shakespeare.complete_works()[:CHARACTERS]
    cut = round((1 - HELD_OUT) * len(text))
    begun = time.process_time()
    predict = learn(text[:cut], SECONDS)
    seconds = time.process_time() - begun
    return held_out_loss(predict, sorted(set(text[:cut])), text[cut:]), seconds


@torch.no_grad()
def held_out_loss(predict: Predict, vocab: list[str], text: str) -> float:
    """Return the loss in nats a character; stretches with unknown characters are left out.

    Raises ValueError for what are no probabilities, or depend on later characters.
    """
    half, known = STRETCH // 2, set(vocab)
    # the scored halves are side by side
    cut = (text[start : start + STRETCH] for start in range(0, len(text) - STRETCH + 1, half))
    stretches = [stretch for stretch in cut if known.issuperset(stretch)]
    _refuse_future(predict, stretches[0])
    losses = []
    for stretch in tqdm(stretches, "predicting", delay=2, leave=False):
        rows = predict(stretch)
        _refuse_no_probabilities(rows, len(stretch), len(vocab))
        targets = torch.tensor([vocab.index(character) for character in stretch[half:]])
        losses.append(-rows[half - 1 : -1].gather(-1, targets[:, None]).log())
    return torch.cat(losses).double().mean().item()


def _refuse_future(predict: Predict, stretch: str) -> None:
    """Raise ValueError where later characters change an earlier row."""
    half = len(stretch) // 2
    gap = (predict(stretch) - predict(stretch[:half] + stretch[:half]))[:half].abs().max()
    if not gap < 1e-3:
        raise ValueError(
            "a row must depend on the characters up to its own, but other characters after the "
            f"middle change rows before it by {gap:.3g}: does the model see the future?"
        )


def _refuse_no_probabilities(rows: Tensor, n: int, vocab: int) -> None:
    expected = (n, vocab)
    if rows.shape != expected or rows.min() < 0 or not ((rows.sum(-1) - 1).abs() < 1e-3).all():
        raise ValueError(
            f"expected probabilities of the shape {expected}, each row with the sum 1, but got "
            f"the shape {tuple(rows.shape)} and rows that begin with {rows[:1]}: are these logits?"
        )
