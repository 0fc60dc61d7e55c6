"""Lesson 07: norms and residual connections, held against torch's norms."""

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
