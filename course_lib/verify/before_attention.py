"""The comparisons of `course_lib.before_attention`."""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import before_attention
from course_lib.verify.comparison import Inputs, compare


@compare(before_attention.rnn_cell, "`nn.RNNCell`")
def _rnn_cell(inputs: Inputs):
    x, h, w_x, w_h, b = _step(inputs, gates=1)
    theirs = _torch_network(nn.RNNCell, w_x, w_h, b, torch.zeros_like(b), _rows(x), _rows(h))
    return before_attention.rnn_cell(x, h, w_x, w_h, b), theirs.reshape(h.shape)


@compare(before_attention.unroll, "`nn.RNN`")
def _unroll(inputs: Inputs):
    (n,) = inputs.sizes(1)
    xs, h, w_x, w_h, b = _step(inputs, n, gates=1)
    flat = xs.reshape(-1, *xs.shape[-2:]).transpose(0, 1), _rows(h).unsqueeze(0)
    theirs, _ = _torch_network(nn.RNN, w_x, w_h, b, torch.zeros_like(b), *flat, layer="_l0")
    return before_attention.unroll(xs, h, w_x, w_h, b), theirs.transpose(0, 1).reshape(
        *xs.shape[:-1], -1
    )


@compare(before_attention.lstm_cell, "`nn.LSTMCell`")
def _lstm_cell(inputs: Inputs):
    x, h, w_x, w_h, b = _step(inputs, gates=4)
    c = inputs.normal(*h.shape)
    state = _rows(h), _rows(c)
    theirs = _torch_network(nn.LSTMCell, w_x, w_h, b, torch.zeros_like(b), _rows(x), state)
    return before_attention.lstm_cell(x, h, c, w_x, w_h, b), tuple(
        y.reshape(h.shape) for y in theirs
    )


@compare(before_attention.gru_cell, "`nn.GRUCell`")
def _gru_cell(inputs: Inputs):
    x, h, w_x, w_h, b_x = _step(inputs, gates=3)
    b_h = inputs.normal(*b_x.shape)
    theirs = _torch_network(nn.GRUCell, w_x, w_h, b_x, b_h, _rows(x), _rows(h))
    return before_attention.gru_cell(x, h, w_x, w_h, b_x, b_h), theirs.reshape(h.shape)


def _step(inputs: Inputs, *words: int, gates: int) -> tuple[Tensor, ...]:
    """Draw a word (or `words` of them), a state, and the weights of a cell with so many gates."""
    batch, (d_in, d_h) = inputs.batch(), inputs.sizes(2)
    x, h = inputs.normal(*batch, *words, d_in), inputs.normal(*batch, d_h)
    w_x, w_h = inputs.normal(d_in, gates * d_h), inputs.normal(d_h, gates * d_h)
    return x, h, w_x, w_h, inputs.normal(gates * d_h)


def _torch_network(kind: type[nn.Module], w_x, w_h, b_x, b_h, *arguments, layer: str = ""):
    """Call one of torch's recurrent networks with our weights."""
    weights = {"weight_ih": w_x.mT, "weight_hh": w_h.mT, "bias_ih": b_x, "bias_hh": b_h}
    network = kind(w_x.shape[0], w_h.shape[0])
    return functional_call(
        network, {f"{name}{layer}": weights[name] for name in weights}, arguments
    )


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


@compare(before_attention.word_window, "`F.conv1d`")
def _word_window(inputs: Inputs):
    batch, (n, d_in, d_out, half) = inputs.batch(), inputs.sizes(4)
    x, weight = inputs.normal(*batch, n, d_in), inputs.normal(2 * half - 1, d_in, d_out)
    bias = inputs.normal(d_out)
    channels = x.reshape(-1, n, d_in).mT
    theirs = F.conv1d(channels, weight.permute(2, 1, 0), bias, padding="same").mT
    return before_attention.word_window(x, weight, bias), theirs.reshape(*batch, n, d_out)
