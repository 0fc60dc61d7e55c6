"""Hold each component against an independent implementation: results and gradients, in float64."""

import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import (
    add_norm,
    attention,
    feed_forward,
    masks,
    multi_head,
    positions,
    rnn,
    self_attention,
    start,
    windows,
)


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


# lesson 04


@contextmanager
def _float64():
    """Make what is built from sizes alone as exact as the inputs."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@compare(positions.sinusoidal, "Python's `math.sin` and `math.cos`, entry by entry")
@_float64()
def _sinusoidal(inputs: Inputs):
    n, half = inputs.sizes(2)
    x, table = inputs.normal(n, 2 * half), torch.empty(n, 2 * half)
    for i in range(n):
        for c in range(half):
            angle = i / math.pow(10000, c / half)
            table[i, 2 * c], table[i, 2 * c + 1] = math.sin(angle), math.cos(angle)
    return x * positions.sinusoidal(n, 2 * half), x * table


@compare(positions.shift_matrix, "complex products with `torch.polar`")
@_float64()
def _shift_matrix(inputs: Inputs):
    half, offset = inputs.sizes(2)
    x = inputs.normal(*inputs.batch(), half, 2)
    # a cosine is the real part of a turning point, a sine its imaginary part
    points = torch.view_as_complex(x.flip(-1))
    theirs = torch.view_as_real(points * _turns(torch.tensor(offset), half)).flip(-1)
    shift = positions.shift_matrix(offset, 2 * half)
    return x.flatten(-2) @ shift, theirs.flatten(-2)


@compare(positions.LearnedPositions, "`F.embedding`")
def _learned_positions(inputs: Inputs):
    n, spare, d_model = inputs.sizes(3)
    x, table = inputs.normal(*inputs.batch(), n, d_model), inputs.normal(n + spare, d_model)
    layer = positions.LearnedPositions(n + spare, d_model)
    return functional_call(layer, {"table": table}, x), x + F.embedding(torch.arange(n), table)


@compare(positions.relative_attention, "`F.softmax` of the visible pairs, query by query")
def _relative_attention(inputs: Inputs):
    (q, k, v), (m,) = _query_key_value(inputs), inputs.sizes(1, 0, 3)
    n_q, n_k, d_k = *q.shape[-2:-1], *k.shape[-2:]
    key_table, value_table = (inputs.normal(2 * m + 1, x.shape[-1]) for x in (k, v))
    mask, theirs = inputs.mask(n_q, n_k), []
    for i in range(n_q):
        seen = [j for j in range(n_k) if mask[i, j]]
        rows = [max(-m, min(m, j - i)) + m for j in seen]
        keys, values = k[..., seen, :] + key_table[rows], v[..., seen, :] + value_table[rows]
        scores = (q[..., i, None, :] * keys).sum(-1) / math.sqrt(d_k)
        theirs.append((F.softmax(scores, dim=-1).unsqueeze(-1) * values).sum(-2))
    ours = positions.relative_attention(q, k, v, key_table, value_table, mask)
    return ours, torch.stack(theirs, dim=-2)


@compare(positions.tree_distance, "the algorithm of Floyd and Warshall")
def _tree_distance(inputs: Inputs):
    (n,) = inputs.sizes(1)
    x = inputs.normal(n, n)
    # hang each word, in any order, under one that hangs there already
    order = x[0].argsort().tolist()
    heads, theirs = torch.full((n,), -1), torch.full((n, n), math.inf, dtype=x.dtype)
    theirs.fill_diagonal_(0)
    for place, word in enumerate(order[1:], start=1):
        (head,) = inputs.sizes(1, 0, place - 1)
        heads[word] = order[head]
        theirs[word, heads[word]] = theirs[heads[word], word] = 1
    for via in range(n):
        theirs = torch.minimum(theirs, theirs[:, via, None] + theirs[via])
    return x * positions.tree_distance(heads), x * theirs


@compare(positions.rotary, "complex products with `torch.polar`")
def _rotary(inputs: Inputs):
    n, half, first = inputs.sizes(3)
    x, places = inputs.normal(*inputs.batch(), n, 2 * half), torch.arange(n) * first
    turned = torch.complex(x[..., :half], x[..., half:]) * _turns(places, half)
    return positions.rotary(x, places), torch.cat([turned.real, turned.imag], dim=-1)


def _turns(places: Tensor, half: int) -> Tensor:
    """Return for each place the complex numbers that turn its pairs of columns."""
    speeds = torch.tensor([math.pow(10000, -c / half) for c in range(half)], dtype=torch.float64)
    angles = places.unsqueeze(-1) * speeds
    return torch.polar(torch.ones_like(angles), angles)


@compare(positions.alibi, "its formula, entry by entry")
@_float64()
def _alibi(inputs: Inputs):
    n_q, more, power = inputs.sizes(3, 0, 4)
    n_q, heads = n_q + 1, 2**power
    scores = inputs.normal(heads, n_q, n_q + more)
    bias = [
        [
            [-abs(i - j) / 2 ** (8 * h / heads) for j in range(n_q + more)]
            for i in range(more, more + n_q)
        ]
        for h in range(1, heads + 1)
    ]
    return scores * positions.alibi(n_q, n_q + more, heads), scores * torch.tensor(bias)


# lesson 05


@compare(feed_forward.feed_forward, "`F.linear`, `F.relu`, `F.linear`")
def _feed_forward(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    x, weights = inputs.normal(*inputs.batch(), d_model), _network(inputs, d_model, d_ff)
    ours = feed_forward.feed_forward(x, *weights)
    return ours, _torch_feed_forward(x, *weights)


@compare(feed_forward.MinimalBlock, "the same, of `F.scaled_dot_product_attention(is_causal=True)`")
def _minimal_block(inputs: Inputs):
    n, half, d_ff = inputs.sizes(3)
    d_model = 2 * half
    x, table = inputs.normal(*inputs.batch(), n, d_model), positions.sinusoidal(n, d_model)
    roles = {f"attention.w_{role}": inputs.normal(d_model, d_model) for role in "qkv"}
    names, network = ("w_1", "b_1", "w_2", "b_2"), _network(inputs, d_model, d_ff)
    parameters = roles | dict(zip(names, network, strict=True))
    ours = functional_call(feed_forward.MinimalBlock(d_model, d_ff), parameters, x)
    q, k, v = (F.linear(x + table, w.mT) for w in roles.values())
    seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return ours, _torch_feed_forward(seen, *network)


def _network(inputs: Inputs, d_model: int, d_ff: int) -> list[Tensor]:
    """Draw the weights and biases of a feed-forward network."""
    return [
        inputs.normal(*shape) for shape in ((d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,))
    ]


def _torch_feed_forward(x: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
    return F.linear(F.relu(F.linear(x, w_1.mT, b_1)), w_2.mT, b_2)


# lesson 06


@compare(multi_head.split_heads, "`torch.chunk`, then `torch.stack`")
def _split_heads(inputs: Inputs):
    n, heads, d_k = inputs.sizes(3)
    x = inputs.normal(*inputs.batch(), n, heads * d_k)
    return multi_head.split_heads(x, heads), torch.stack(x.chunk(heads, dim=-1), dim=-3)


@compare(multi_head.merge_heads, "`torch.unbind`, then `torch.cat`")
def _merge_heads(inputs: Inputs):
    x = inputs.normal(*inputs.batch(), *inputs.sizes(3))
    return multi_head.merge_heads(x), torch.cat(x.unbind(dim=-3), dim=-1)


@compare(multi_head.MultiHeadAttention, "`nn.MultiheadAttention`")
def _multi_head(inputs: Inputs):
    return _both_multi_heads(inputs, inputs.batch(), lambda batch, n_q, n_k: None)


@compare(multi_head.MultiHeadAttention, "the same, with one mask and a row all masked")
def _masked_multi_head(inputs: Inputs):
    return _both_multi_heads(inputs, inputs.batch(), lambda batch, *pair: inputs.mask(*pair))


@compare(multi_head.MultiHeadAttention, "the same, with `key_padding_mask`")
def _padded_multi_head(inputs: Inputs):
    def padding(batch: int, n_q: int, n_k: int) -> Tensor:
        return masks.padding_mask(torch.tensor(inputs.sizes(batch, 1, n_k)), n_k)

    return _both_multi_heads(inputs, inputs.sizes(1), padding)


def _both_multi_heads(inputs: Inputs, batch: list[int], draw_mask: Callable):
    """Attend with ours and torch's; a mask with one row a sentence is a padding mask."""
    n_q, n_k, heads, d_k = inputs.sizes(4)
    d_model = heads * d_k
    query = inputs.normal(*batch, n_q, d_model)
    key, value = (inputs.normal(*batch, n_k, d_model) for _ in range(2))
    weights = [inputs.normal(d_model, d_model) for _ in range(4)]
    biases = [inputs.normal(d_model) for _ in range(4)]
    mask = draw_mask(math.prod(batch), n_q, n_k)
    parameters = {f"w_{role}.weight": w for role, w in zip("qkvo", weights, strict=True)}
    parameters |= {f"w_{role}.bias": b for role, b in zip("qkvo", biases, strict=True)}
    ours = multi_head.MultiHeadAttention(d_model, heads)
    theirs = nn.MultiheadAttention(d_model, heads, batch_first=True)
    torchs = {
        "in_proj_weight": torch.cat(weights[:3]),
        "in_proj_bias": torch.cat(biases[:3]),
        "out_proj.weight": weights[3],
        "out_proj.bias": biases[3],
    }
    options = {"need_weights": False}
    if mask is not None and mask.dim() == 3:
        options["key_padding_mask"] = ~mask.squeeze(-2)
    elif mask is not None:
        options["attn_mask"] = ~mask
    flat = tuple(x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    found, _ = functional_call(theirs, torchs, flat, options)
    return functional_call(ours, parameters, (query, key, value, mask)), found.reshape(query.shape)


# lesson 07


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
