"""The comparisons of `course_lib.add_norm`."""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import add_norm, masks
from course_lib.verify.comparison import Inputs, compare


@compare(add_norm.layer_norm, "`F.layer_norm`")
def _layer_norm(inputs: Inputs):
    (d,) = inputs.sizes(1)
    x, gain, bias = inputs.normal(*inputs.batch(), d), inputs.normal(d), inputs.normal(d)
    return add_norm.layer_norm(x, gain, bias, 0.01), F.layer_norm(x, (d,), gain, bias, 0.01)


@compare(add_norm.rms_norm, "`F.rms_norm`")
def _rms_norm(inputs: Inputs):
    (d,) = inputs.sizes(1)
    x, gain = inputs.normal(*inputs.batch(), d), inputs.normal(d)
    return add_norm.rms_norm(x, gain, 0.01), F.rms_norm(x, (d,), gain, 0.01)


@compare(add_norm.batch_norm, "`F.batch_norm(training=True)`")
def _batch_norm(inputs: Inputs):
    x, gain, bias = _columns(inputs)
    theirs = F.batch_norm(x.mT, None, None, gain, bias, training=True).mT
    return add_norm.batch_norm(x, gain, bias), theirs


@compare(add_norm.batch_norm, "the same of the real words alone")
def _padded_batch_norm(inputs: Inputs):
    x, gain, bias = _columns(inputs)
    real = masks.padding_mask(torch.tensor(inputs.sizes(len(x), 2, x.shape[1])), x.shape[1])
    real = real.squeeze(-2)
    theirs = F.batch_norm(x[real], None, None, gain, bias, training=True)
    return add_norm.batch_norm(x, gain, bias, real)[real], theirs


def _columns(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a batch of at least two words, and a gain and a bias for each column."""
    batch, n, d = inputs.sizes(3, 2)
    return inputs.normal(batch, n, d), inputs.normal(d), inputs.normal(d)


@compare(add_norm.Norm, "`nn.LayerNorm`")
def _norm(inputs: Inputs):
    n, d = inputs.sizes(2)
    x, gain, bias = inputs.normal(*inputs.batch(), n, d), inputs.normal(d), inputs.normal(d)
    theirs = functional_call(nn.LayerNorm(d), {"weight": gain, "bias": bias}, x)
    return functional_call(add_norm.Norm(d), {"gain": gain, "bias": bias}, x), theirs


@compare(add_norm.PostNorm, "`F.layer_norm` of the sum")
def _post_norm(inputs: Inputs):
    x, gain, bias, weight = _residual(inputs)
    layer = add_norm.PostNorm(F.linear, len(gain))
    ours = functional_call(layer, {"gain": gain, "bias": bias}, (x, weight))
    return ours, F.layer_norm(x + F.linear(x, weight), gain.shape, gain, bias)


@compare(add_norm.PreNorm, "the sum with what is made of `F.layer_norm`")
def _pre_norm(inputs: Inputs):
    x, gain, bias, weight = _residual(inputs)
    layer = add_norm.PreNorm(F.linear, len(gain))
    ours = functional_call(layer, {"gain": gain, "bias": bias}, (x, weight))
    return ours, x + F.linear(F.layer_norm(x, gain.shape, gain, bias), weight)


@compare(add_norm.DeepNorm, "`F.layer_norm` of the sum with x taken three times")
def _deep_norm(inputs: Inputs):
    x, gain, bias, weight = _residual(inputs)
    layer = add_norm.DeepNorm(F.linear, len(gain), alpha=3.0)
    ours = functional_call(layer, {"gain": gain, "bias": bias}, (x, weight))
    return ours, F.layer_norm(x + x + x + F.linear(x, weight), gain.shape, gain, bias)


def _residual(inputs: Inputs) -> tuple[Tensor, ...]:
    (d,) = inputs.sizes(1, 2)
    x, weight = inputs.normal(*inputs.batch(), d), inputs.normal(d, d)
    return x, inputs.normal(d), inputs.normal(d), weight


@compare(add_norm.erase_direction, "what `torch.linalg.pinv` leaves")
def _erase_direction(inputs: Inputs):
    (d,) = inputs.sizes(1)
    stream, direction = inputs.normal(*inputs.batch(), d), inputs.normal(d)
    column = direction.unsqueeze(-1)
    kept = torch.eye(d, dtype=stream.dtype) - column @ torch.linalg.pinv(column)
    return add_norm.erase_direction(stream, direction), stream @ kept


@compare(add_norm.induction_weights, "a search through the text by `torch.nonzero`")
def _induction_weights(inputs: Inputs):
    (vocab,) = inputs.sizes(1, 3)
    # two rounds of all tokens
    tokens = torch.cat([torch.tensor(inputs.sizes(vocab, 0, 99)).argsort() for _ in range(2)])
    now, before = (F.one_hot(x, vocab).double() for x in (tokens, tokens.roll(1)))
    x = torch.cat([now, before, 0 * now, torch.ones(2 * vocab, 16).double()], dim=-1)
    w_q, w_k, w_v, w_o = (w.double() for w in add_norm.induction_weights(vocab))
    # each value is multiplied by a number of its own, which the head should copy
    numbers, keys = inputs.normal(2 * vocab, 1), slice(1, vocab + 1)
    roles = (x @ w_q)[vocab:], (x @ w_k)[keys], (numbers * (x @ w_v))[keys]
    ours = F.scaled_dot_product_attention(*roles) @ w_o
    after = torch.stack([torch.nonzero(tokens == token)[0] + 1 for token in tokens[vocab:]])
    theirs = F.pad(numbers[after.squeeze(1)] * now[after.squeeze(1)], (2 * vocab, 16))
    return ours, theirs
