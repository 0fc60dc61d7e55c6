"""Lesson 01: is it the rate, the start or the steps that keep a plain RNN from reading short words?

The page's network of two plain loops, with smaller rates, with orthogonal recurrent matrices, and
with five times the steps. Held-out words by their letters.
"""

from typing import Any

import torch
from torch import Tensor, nn

from course_lib.before_attention import rnn_cell, unroll
from course_lib.data import spelling
from course_lib.instruments import training
from course_lib.seq2seq import PAD, START, STOP, decode_greedy, next_token_loss
from research.experiments.long_words import LONGEST

LESSON = "01"
SEEDS = (0,)

D, D_EMBEDDING, BATCH = 64, 32, 128
LENGTHS = range(3, 6)
PAGE = (1000, 0.01, False)  # as trained on the page
FIRST = 31  # letters of the long word, which the gradient crosses
ARMS = {  # steps, learning rate, orthogonal
    "rate 0.001": (1000, 0.001, False),
    "rate 0.003": (1000, 0.003, False),
    "rate 0.005": (1000, 0.005, False),
    "rate 0.02": (1000, 0.02, False),
    "orthogonal": (1000, 0.003, True),
    "orthogonal, 5,000 steps": (5000, 0.003, True),
}


class TwoLoops(nn.Module):
    """An encoder and a decoder of plain recurrent cells, as on the page."""

    def __init__(self, orthogonal: bool):
        super().__init__()
        self.letters = nn.Embedding(len(spelling.LETTERS), D_EMBEDDING)
        self.sounds = nn.Embedding(len(spelling.SOUNDS), D_EMBEDDING)
        self.encoder, self.decoder = (
            nn.ParameterList(
                torch.empty(shape).uniform_(-(D**-0.5), D**-0.5)
                for shape in ((D_EMBEDDING, D), (D, D), (D,))
            )
            for _ in range(2)
        )
        self.output = nn.Linear(D, len(spelling.SOUNDS))
        if orthogonal:
            for loop in (self.encoder, self.decoder):
                nn.init.orthogonal_(loop[1])

    def context(self, source: Tensor) -> Tensor:
        """Return the encoder's state where each word ends."""
        states = unroll(self.letters(source), torch.zeros(len(source), D), *self.encoder)
        return states[range(len(source)), (source != PAD).sum(-1) - 1]

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Score the next sound after each."""
        return self.output(unroll(self.sounds(target), self.context(source), *self.decoder))

    @torch.no_grad()
    def decode(self, source: Tensor, most: int) -> Tensor:
        """Write the likeliest sounds."""

        def step(sounds: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
            state = rnn_cell(self.sounds(sounds), state, *self.decoder)
            return self.output(state), state

        return decode_greedy(step, self.context(source), START, STOP, most)


def measure() -> dict:
    """Return by arm the shares of words all right, by letters, and what *cat* sounds like.

    Beside it, the mean slope of the tanh in the page's network, before its training and after.
    """
    torch.set_num_threads(1)
    _, held_out = spelling.split()
    figures = {}
    for name, arm in ARMS.items():
        model: Any = trained(*arm)  # it does what is asked of a `Seq2Seq`
        shares = spelling.accuracy_by_length(model, held_out, LENGTHS)
        [heard] = spelling.pronounce(model, ["cat"])
        figures[name] = {"right": shares, "cat": heard}
    slopes = {"untrained": slope(trained(0, *PAGE[1:])), "trained": slope(trained(*PAGE))}
    return {"lengths": [*LENGTHS], "arms": figures, "slope": slopes}


def trained(steps: int, rate: float, orthogonal: bool) -> TwoLoops:
    """Train one network."""
    learning, _ = spelling.split()
    with training.seeded(SEEDS[0]):
        model = TwoLoops(orthogonal)
    batches = spelling.batches(learning, BATCH, SEEDS[0])
    taught: Any = model  # it does what is asked of a `Seq2Seq`
    if steps:
        training.train(taught, batches, next_token_loss, steps=steps, learning_rate=rate)
    return model


@torch.no_grad()
def slope(model: TwoLoops) -> float:
    """Return the mean slope of the tanh, 1 - h^2, over the first letters of the long word."""
    letters = model.letters(spelling.encode_words([LONGEST])[0, :FIRST])
    states = unroll(letters, torch.zeros(D), *model.encoder)
    return (1 - states.square()).mean().item()


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"{name:24} cat: {' '.join(arm['cat']):24} right: "
        + " ".join(f"{share:.2f}" for share in arm["right"])
        for name, arm in figures["arms"].items()
    ]
