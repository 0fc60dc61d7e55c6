"""Reversible blocks: the input is computed again from the output (lesson 14).

Memory O(n d) at any depth, in place of O(layers n d); time: one more forward pass, during the
backward pass.
Source: Gomez et al. 2017 ("RevNet"), section 3; Kitaev et al. 2020 ("Reformer"), section 3.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call


class ReversibleBlock(nn.Module):
    """Add f to one stream and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2], side by side on the last axis: halves of the channels in a RevNet, two copies of
    the input in a Reformer, where f is attention and g the feed-forward network. Both return the
    same each time they are called (no dropout). Source: Gomez et al. 2017, eq. 6 and 7; Kitaev et
    al. 2020, section 3.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Let each stream change the other."""
        # separate the two streams
        x1, x2 = halves(x)
        # let the second stream change the first, then the changed first stream the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Return the x for which `forward` returns y."""
        # separate the two streams
        y1, y2 = halves(y)
        # subtract what was added, the last first
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return torch.cat([x1, x2], dim=-1)


class ReversibleSequence(nn.Module):
    """Run reversible blocks one after another, and store the last output alone.

    In the backward pass, each block computes its input again from its output, and gradients from
    both: they equal autograd's. Activations take O(n d) memory for any number of blocks, and the
    time of one more forward pass. f and g must not depend on other tensors that need gradients than
    their input and their parameters. Source: Gomez et al. 2017, algorithm 1.
    """

    def __init__(self, blocks: Iterable[ReversibleBlock]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Send x through all blocks."""
        layers: list[Any] = [layer for block in self.blocks for layer in (block.f, block.g)]
        return _Sequence.apply(layers, x, *(p for layer in layers for p in _named(layer).values()))


def halves(x: Float[Tensor, "... n d"]) -> tuple[Tensor, ...]:
    """Separate x1 and x2, the halves of the last axis. Raises ValueError for an odd size."""
    if x.shape[-1] % 2:
        raise ValueError(f"x1 and x2 are equal halves, so d must be even, not {x.shape[-1]}")
    return x.chunk(2, dim=-1)


class _Sequence(torch.autograd.Function):
    """The layers f, g, f, g, ...; their parameters are inputs, so that autograd knows of them."""

    @staticmethod
    def forward(ctx, layers: list[Callable], x: Tensor, *parameters: Tensor):
        """Let the two halves change each other in turn."""
        one, other = halves(x)
        for layer in layers:
            one, other = other, one + layer(other)
        y = torch.cat([one, other], dim=-1)
        ctx.layers = layers
        ctx.save_for_backward(y, *parameters)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, d_y: Tensor):
        """Take off what each layer added, the last first, and carry the gradients along."""
        y, *parameters = ctx.saved_tensors
        (one, other), (d_one, d_other) = halves(y), halves(d_y)
        gradients = []
        for layer in reversed(ctx.layers):
            first = len(parameters) - len(_named(layer))
            own, parameters = parameters[first:], parameters[:first]
            added, d_in, *d_own = _pull(layer, one, own, d_other)
            one, other = other - added, one
            d_one, d_other = d_other, d_one + d_in
            gradients = [*d_own, *gradients]
        return None, torch.cat([d_one, d_other], dim=-1), *gradients


def _named(layer: Callable) -> dict[str, Tensor]:
    return dict(layer.named_parameters()) if isinstance(layer, nn.Module) else {}


def _pull(layer: Callable, x: Tensor, parameters: list[Tensor], d_out: Tensor) -> tuple:
    """Return layer(x), and the gradients of x and of the parameters."""
    # as they were on the way forward, though another model may have borrowed the layer since
    leaves = [x, *parameters]
    leaves = [leaf.detach().requires_grad_(leaf is x or leaf.requires_grad) for leaf in leaves]
    with torch.enable_grad():
        if isinstance(layer, nn.Module) and (named := _named(layer)):
            out = functional_call(layer, dict(zip(named, leaves[1:], strict=True)), leaves[0])
        else:
            out = layer(leaves[0])
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    gradients = iter(torch.autograd.grad(out, wanted, d_out, allow_unused=True))
    return out.detach(), *(next(gradients) if leaf.requires_grad else None for leaf in leaves)
