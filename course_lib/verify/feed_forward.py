"""Lesson 05: the feed-forward network and the minimal block, held against torch's layers."""

from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import feed_forward, positions
from course_lib.verify.comparison import Inputs, compare


@compare(feed_forward.feed_forward, "`F.linear`, `F.relu`, `F.linear`")
def _feed_forward(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    x, weights = inputs.normal(*inputs.batch(), d_model), _network(inputs, d_model, d_ff)
    ours = feed_forward.feed_forward(x, *weights)
    return ours, _torch_feed_forward(x, *weights)


@compare(feed_forward.FeedForward, "`nn.Linear`, `nn.ReLU`, `nn.Linear`")
def _feed_forward_layer(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    x, weights = inputs.normal(*inputs.batch(), d_model), _network(inputs, d_model, d_ff)
    parameters: dict[str, Tensor]
    parameters = dict(zip(("w_1", "b_1", "w_2", "b_2"), weights, strict=True))
    ours = functional_call(feed_forward.FeedForward(d_model, d_ff), parameters, x)
    theirs = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
    names = ("0.weight", "0.bias", "2.weight", "2.bias")
    turned = {
        name: weight.mT if weight.dim() == 2 else weight
        for name, weight in zip(names, weights, strict=True)
    }
    return ours, functional_call(theirs, turned, x)


@compare(feed_forward.gelu_feed_forward, "`F.linear`, `F.gelu`, `F.linear`")
def _gelu_feed_forward(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    x = inputs.normal(*inputs.batch(), d_model)
    w_1, b_1, w_2, b_2 = _network(inputs, d_model, d_ff)
    theirs = F.linear(F.gelu(F.linear(x, w_1.mT, b_1)), w_2.mT, b_2)
    return feed_forward.gelu_feed_forward(x, w_1, b_1, w_2, b_2), theirs


@compare(feed_forward.MinimalBlock, "the same, of `F.scaled_dot_product_attention(is_causal=True)`")
def _minimal_block(inputs: Inputs):
    n, half, d_ff = inputs.sizes(3)
    d_model = 2 * half
    x, table = inputs.normal(*inputs.batch(), n, d_model), positions.sinusoidal(n, d_model)
    roles = {f"attention.w_{role}": inputs.normal(d_model, d_model) for role in "qkv"}
    names = (f"feed_forward.{name}" for name in ("w_1", "b_1", "w_2", "b_2"))
    network = _network(inputs, d_model, d_ff)
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
