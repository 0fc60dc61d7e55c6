"""Hold each component against an independent implementation: results and gradients, in float64."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import attention, rnn, self_attention, start, windows


class Inputs:
    """Draws inputs of random shapes from a seed, and keeps those that have gradients."""

    def __init__(self, seed: int):
        self._generator = torch.Generator().manual_seed(seed)
        self.leaves: list[Tensor] = []

    def sizes(self, count: int, low: int = 1, high: int = 6) -> list[int]:
        """Draw sizes of axes, from `low` to `high`."""
        return torch.randint(low, high + 1, (count,), generator=self._generator).tolist()

    def batch(self) -> list[int]:
        """Draw no, one or two batch dimensions."""
        (dimensions,) = self.sizes(1, 0, 2)
        return self.sizes(dimensions, 1, 3)

    def normal(self, *shape: int) -> Tensor:
        """Draw a float64 tensor from the unit normal distribution; its gradient is compared."""
        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float64)
        self.leaves.append(drawn.requires_grad_())
        return drawn

    def mask(self, *shape: int) -> Tensor:
        """Draw a mask that shows half of the keys, and none to the first query."""
        shown = torch.rand(shape, generator=self._generator) < 1 / 2
        shown[..., 0, :] = False
        return shown


@dataclass(frozen=True)
class Comparison:
    """A component and its oracle. `results(inputs)` returns what each makes of the same inputs."""

    component: str
    oracle: str
    results: Callable[[Inputs], tuple]


@dataclass(frozen=True)
class Row:
    """The largest absolute differences between a component and its oracle."""

    component: str
    oracle: str
    error: float
    gradient_error: float


COMPARISONS: list[Comparison] = []


def compare(component: Callable, oracle: str) -> Callable:
    """Take the function below as the comparison of a component with an oracle."""
    name = f"{component.__module__.removeprefix('course_lib.')}.{component.__name__}"
    return lambda results: COMPARISONS.append(Comparison(name, oracle, results)) or results


def verify(trials: int = 20) -> list[Row]:
    """Compare each component with its oracle on inputs of `trials` random shapes."""
    return [measure(comparison, trials) for comparison in COMPARISONS]


def measure(comparison: Comparison, trials: int) -> Row:
    """Find the largest error of a component, and that of its gradients.

    Raises RuntimeError where the two results have different shapes.
    """
    errors = []
    for seed in range(trials):
        inputs = Inputs(seed)
        ours, theirs = map(_tensors, comparison.results(inputs))
        # pull the same random cotangents back through both
        leaves = tuple(inputs.leaves)
        cotangents = [inputs.normal(*y.shape) for y in theirs]
        gradients = [torch.autograd.grad(y, leaves, cotangents) for y in (ours, theirs)]
        errors.append([_difference(ours, theirs), _difference(*gradients)])
    # torch's maximum, unlike Python's, lets no NaN slip through
    error, gradient_error = torch.tensor(errors).amax(0).tolist()
    return Row(comparison.component, comparison.oracle, error, gradient_error)


def as_markdown(rows: list[Row]) -> str:
    """Lay rows out as a table for a page."""
    lines = ["| component | oracle | largest error | largest gradient error |", "|:-|:-|-:|-:|"]
    lines += [
        f"| `{row.component}` | {row.oracle} | {row.error:.0e} | {row.gradient_error:.0e} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _tensors(result: Tensor | tuple) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def _difference(ours: tuple, theirs: tuple) -> Tensor:
    gaps = [(a - b).detach().abs().max() for a, b in zip(ours, theirs, strict=True)]
    return torch.stack(gaps).max()


@compare(start.double, "`torch.add`")
def _double(inputs: Inputs):
    x = inputs.normal(*inputs.batch())
    return start.double(x), torch.add(x, x)


# lesson 01


@compare(rnn.rnn_cell, "`nn.RNNCell`")
def _rnn_cell(inputs: Inputs):
    x, h, w_x, w_h, b = _step(inputs, gates=1)
    theirs = _torch_network(nn.RNNCell, w_x, w_h, b, torch.zeros_like(b), _rows(x), _rows(h))
    return rnn.rnn_cell(x, h, w_x, w_h, b), theirs.reshape(h.shape)


@compare(rnn.unroll, "`nn.RNN`")
def _unroll(inputs: Inputs):
    (n,) = inputs.sizes(1)
    xs, h, w_x, w_h, b = _step(inputs, n, gates=1)
    flat = xs.reshape(-1, *xs.shape[-2:]).transpose(0, 1), _rows(h).unsqueeze(0)
    theirs, _ = _torch_network(nn.RNN, w_x, w_h, b, torch.zeros_like(b), *flat, layer="_l0")
    return rnn.unroll(xs, h, w_x, w_h, b), theirs.transpose(0, 1).reshape(*xs.shape[:-1], -1)


@compare(rnn.lstm_cell, "`nn.LSTMCell`")
def _lstm_cell(inputs: Inputs):
    x, h, w_x, w_h, b = _step(inputs, gates=4)
    c = inputs.normal(*h.shape)
    state = _rows(h), _rows(c)
    theirs = _torch_network(nn.LSTMCell, w_x, w_h, b, torch.zeros_like(b), _rows(x), state)
    return rnn.lstm_cell(x, h, c, w_x, w_h, b), tuple(y.reshape(h.shape) for y in theirs)


@compare(rnn.gru_cell, "`nn.GRUCell`")
def _gru_cell(inputs: Inputs):
    x, h, w_x, w_h, b_x = _step(inputs, gates=3)
    b_h = inputs.normal(*b_x.shape)
    theirs = _torch_network(nn.GRUCell, w_x, w_h, b_x, b_h, _rows(x), _rows(h))
    return rnn.gru_cell(x, h, w_x, w_h, b_x, b_h), theirs.reshape(h.shape)


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


@compare(windows.word_window, "`F.conv1d`")
def _word_window(inputs: Inputs):
    batch, (n, d_in, d_out, half) = inputs.batch(), inputs.sizes(4)
    x, weight = inputs.normal(*batch, n, d_in), inputs.normal(2 * half - 1, d_in, d_out)
    bias = inputs.normal(d_out)
    channels = x.reshape(-1, n, d_in).mT
    theirs = F.conv1d(channels, weight.permute(2, 1, 0), bias, padding="same").mT
    return windows.word_window(x, weight, bias), theirs.reshape(*batch, n, d_out)


# lesson 02


@compare(attention.softmax, "`F.softmax`")
def _softmax(inputs: Inputs):
    scores = inputs.normal(*inputs.batch(), *inputs.sizes(2))
    return attention.softmax(scores), F.softmax(scores, dim=-1)


@compare(attention.softmax, "`F.softmax` of the visible keys alone, row by row")
def _masked_softmax(inputs: Inputs):
    n_q, n_k = inputs.sizes(2)
    scores, mask = inputs.normal(*inputs.batch(), n_q, n_k), inputs.mask(n_q, n_k)
    theirs = torch.zeros_like(scores)
    for i, visible in enumerate(mask):
        theirs[..., i, visible] = F.softmax(scores[..., i, visible], dim=-1)
    return attention.softmax(scores, mask), theirs


@compare(attention.dot_scores, "`torch.linalg.vecdot` of each pair")
def _dot_scores(inputs: Inputs):
    batch, (n_q, n_k, d_k) = inputs.batch(), inputs.sizes(3)
    q, k = inputs.normal(*batch, n_q, d_k), inputs.normal(*batch, n_k, d_k)
    return attention.dot_scores(q, k), torch.linalg.vecdot(*_pairs(q, k))


@compare(attention.bilinear_scores, "`F.bilinear` of each pair")
def _bilinear_scores(inputs: Inputs):
    batch, (n_q, n_k, d_q, d_k) = inputs.batch(), inputs.sizes(4)
    q, k = inputs.normal(*batch, n_q, d_q), inputs.normal(*batch, n_k, d_k)
    w = inputs.normal(d_q, d_k)
    theirs = F.bilinear(*_pairs(q, k), w.unsqueeze(0)).squeeze(-1)
    return attention.bilinear_scores(q, k, w), theirs


@compare(attention.additive_scores, "`F.linear` of each pair side by side, twice")
def _additive_scores(inputs: Inputs):
    batch, (n_q, n_k, d_q, d_k, d_a) = inputs.batch(), inputs.sizes(5)
    q, k = inputs.normal(*batch, n_q, d_q), inputs.normal(*batch, n_k, d_k)
    w_q, w_k, v = inputs.normal(d_q, d_a), inputs.normal(d_k, d_a), inputs.normal(d_a)
    hidden = F.linear(torch.cat(_pairs(q, k), dim=-1), torch.cat([w_q, w_k]).mT)
    theirs = F.linear(torch.tanh(hidden), v.unsqueeze(0)).squeeze(-1)
    return attention.additive_scores(q, k, w_q, w_k, v), theirs


def _pairs(q: Tensor, k: Tensor) -> list[Tensor]:
    """Repeat each query for every key, and each key for every query."""
    pairs = (*q.shape[:-1], k.shape[-2], -1)
    return [q.unsqueeze(-2).expand(pairs), k.unsqueeze(-3).expand(pairs)]


@compare(attention.weighted_sum, "`torch.bmm`")
def _weighted_sum(inputs: Inputs):
    batch, (n_q, n_k, d_v) = inputs.batch(), inputs.sizes(3)
    weights, v = inputs.normal(*batch, n_q, n_k), inputs.normal(*batch, n_k, d_v)
    theirs = torch.bmm(weights.reshape(-1, n_q, n_k), v.reshape(-1, n_k, d_v))
    return attention.weighted_sum(weights, v), theirs.reshape(*batch, n_q, d_v)


@compare(attention.soft_lookup, "`F.scaled_dot_product_attention(scale=1 / temperature)`")
def _soft_lookup(inputs: Inputs):
    q, k, v = _query_key_value(inputs)
    temperature = inputs.sizes(1)[0] / 2
    theirs = F.scaled_dot_product_attention(q, k, v, scale=1 / temperature)
    return attention.soft_lookup(q, k, v, temperature), theirs


@compare(attention.soft_lookup, "the same, with one query for each table")
def _single_lookup(inputs: Inputs):
    batch, (n_k, d_k, d_v) = inputs.batch(), inputs.sizes(3)
    query = inputs.normal(*batch, d_k)
    keys, values = inputs.normal(*batch, n_k, d_k), inputs.normal(*batch, n_k, d_v)
    theirs = F.scaled_dot_product_attention(query.unsqueeze(-2), keys, values, scale=1 / 0.7)
    return attention.soft_lookup(query, keys, values, 0.7), theirs.squeeze(-2)


def _query_key_value(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    batch, (n_q, n_k, d_k, d_v) = inputs.batch(), inputs.sizes(4)
    q, k = inputs.normal(*batch, n_q, d_k), inputs.normal(*batch, n_k, d_k)
    return q, k, inputs.normal(*batch, n_k, d_v)


# lesson 03


@compare(self_attention.parameter_free, "`F.scaled_dot_product_attention(scale=1)`")
def _parameter_free(inputs: Inputs):
    x = inputs.normal(*inputs.batch(), *inputs.sizes(2))
    return self_attention.parameter_free(x), F.scaled_dot_product_attention(x, x, x, scale=1.0)


@compare(self_attention.parameter_free, "the same, with `is_causal=True`")
def _parameter_free_causal(inputs: Inputs):
    x = inputs.normal(*inputs.batch(), *inputs.sizes(2))
    theirs = F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=1.0)
    return self_attention.parameter_free(x, causal=True), theirs


@compare(self_attention.project, "one `F.linear`, then split")
def _project(inputs: Inputs):
    n, d_model, d_k, d_v = inputs.sizes(4)
    x = inputs.normal(*inputs.batch(), n, d_model)
    matrices = [inputs.normal(d_model, size) for size in (d_k, d_k, d_v)]
    theirs = F.linear(x, torch.cat(matrices, dim=-1).mT).split([d_k, d_k, d_v], dim=-1)
    return self_attention.project(x, *matrices), theirs


@compare(self_attention.scaled_dot_product_attention, "`F.scaled_dot_product_attention`")
def _scaled_dot_product_attention(inputs: Inputs):
    q, k, v = _query_key_value(inputs)
    theirs = F.scaled_dot_product_attention(q, k, v)
    return self_attention.scaled_dot_product_attention(q, k, v), theirs


@compare(self_attention.scaled_dot_product_attention, "the same, with masks and a row all masked")
def _masked_attention(inputs: Inputs):
    q, k, v = _query_key_value(inputs)
    mask = inputs.mask(*q.shape[:-1], k.shape[-2])
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return self_attention.scaled_dot_product_attention(q, k, v, mask), theirs


@compare(self_attention.SelfAttention, "`F.scaled_dot_product_attention` of three `F.linear`")
def _self_attention(inputs: Inputs):
    n, d_model, d_k, d_v = inputs.sizes(4)
    x, mask = inputs.normal(*inputs.batch(), n, d_model), inputs.mask(n, n)
    shapes = {"w_q": d_k, "w_k": d_k, "w_v": d_v}
    weights = {name: inputs.normal(d_model, size) for name, size in shapes.items()}
    layer = self_attention.SelfAttention(d_model, d_k, d_v)
    roles = [F.linear(x, w.mT) for w in weights.values()]
    theirs = F.scaled_dot_product_attention(*roles, attn_mask=mask)
    return functional_call(layer, weights, (x, mask)), theirs
