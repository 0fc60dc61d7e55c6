"""Lesson 01: the gradient against distance, before training and after it."""

import torch
from torch import Tensor, nn

from course_lib.before_attention import gru_cell, lstm_cell, rnn_cell
from course_lib.data import spelling
from course_lib.instruments import training
from course_lib.pretrained import g2p
from course_lib.seq2seq import Seq2Seq

LESSON = "01"
SEEDS = (0, 1, 2)

D = 64  # size of word and state, where gradients are measured at the beginning
FARTHEST = 50  # words back
WORD = 14  # letters of the words that g2p-en reads, where its gradients are measured

# Jozefowicz et al. 2015: an LSTM that begins with 1 added to the bias of its forget gate
REMEMBERING = "LSTM, forget + 1"


def _lstm_step(
    x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
) -> tuple[Tensor, Tensor]:
    return lstm_cell(x, h, c, w_x, w_h, b_x + b_h)


CELLS = {
    "RNN": (nn.RNN, lambda x, h, c, w_x, w_h, b_x, b_h: (rnn_cell(x, h, w_x, w_h, b_x + b_h), c)),
    "LSTM": (nn.LSTM, _lstm_step),
    REMEMBERING: (nn.LSTM, _lstm_step),
    "GRU": (nn.GRU, lambda x, h, c, *weights: (gru_cell(x, h, *weights), c)),
}


def measure() -> dict:
    """Return gradients by distance, of untrained cells and in g2p-en."""
    model = g2p.load()
    return {
        "gradient": {kind: [untrained_gradient(kind, seed) for seed in SEEDS] for kind in CELLS},
        "gradient_g2p": word_gradient(model),
        # the same encoder as it was before training, but for torch's random numbers
        "gradient_g2p_untrained": [word_gradient(untrained(seed)) for seed in SEEDS],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    distances = (0, 1, 2, 5, 10, 20, 50)
    lines = ["|d h_n / d x_(n-k)|, k = " + "".join(f"{k:9}" for k in distances)]
    for kind, seeds in figures["gradient"].items():
        for seed, norms in enumerate(seeds):
            shown = "".join(f"{norms[k]:9.1e}" for k in distances)
            lines.append(f"{kind:17}seed {seed}   {shown}")
    words = {"g2p-en, trained": figures["gradient_g2p"]}
    words |= {f"untrained, seed {i}": x for i, x in enumerate(figures["gradient_g2p_untrained"])}
    for name, norms in words.items():
        shown = "".join(f"{norms[k]:9.1e}" for k in distances if k < len(norms))
        lines.append(f"{name:25}{shown}")
    return lines


def untrained_gradient(kind: str, seed: int) -> list[float]:
    """Return the norm of d h_n / d x_(n-k), k = 0..FARTHEST, with the weights torch begins with.

    The words are independent unit normals; the norm of the Jacobian matrix is Frobenius'.
    """
    layer_type, step = CELLS[kind]
    with training.seeded(seed):
        layer = layer_type(D, D, dtype=torch.float64).requires_grad_(False)
        xs = torch.randn(FARTHEST + 1, D, dtype=torch.float64).requires_grad_()
    if kind == REMEMBERING:
        layer.bias_ih_l0[D : 2 * D] += 1
    h, c = xs.new_zeros(2, D)
    for x in xs:
        h, c = step(
            *(x, h, c),
            *(layer.weight_ih_l0.T, layer.weight_hh_l0.T, layer.bias_ih_l0, layer.bias_hh_l0),
        )
    return _norms(h, xs)


def untrained(seed: int) -> Seq2Seq:
    """Return a model of g2p-en's size with fresh weights."""
    with training.seeded(seed):
        sizes = len(spelling.LETTERS), len(spelling.SOUNDS), g2p.D_HIDDEN, g2p.D_HIDDEN
        return Seq2Seq(*sizes).requires_grad_(False)


def word_gradient(model: Seq2Seq) -> list[float]:
    """Return the same norm in a model's encoder, a mean over held-out words."""
    _, held_out = spelling.split()
    words = sorted({word for word, _ in held_out if len(word) == WORD})[::10]
    norms = []
    for row in spelling.encode_words(words):
        xs = model.encoder.embedding(row).detach().requires_grad_()
        states = model.encoder.rightward(xs[None], xs.new_zeros(1, model.encoder.d_reader))
        norms.append(_norms(states[0, -1], xs))
    return torch.tensor(norms).mean(dim=0).tolist()


def _norms(last: Tensor, xs: Tensor) -> list[float]:
    """Return the Frobenius norm of d last / d x for each row x of xs, the nearest first."""
    ones = torch.eye(len(last), dtype=last.dtype)
    (jacobian,) = torch.autograd.grad(last, xs, ones, is_grads_batched=True)
    return jacobian.square().sum(dim=(0, 2)).sqrt().flip(0).tolist()
