"""The loss around a trained model, seen on a plane through its weights (lesson 07)."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

Batch = TypeVar("Batch")


def direction(weights: Mapping[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
    """Draw a random direction for each matrix, each of its rows as long as the weights' row.

    d = r |w| / |r|, row by row, for r drawn from unit normals; vectors (biases, and the gains of
    norms) do not move. So a step of length 1 changes each row by as much as it holds, and two
    models whose weights differ in scale can be compared. Source: Li et al. 2018, section 4.
    """
    directions = {}
    for name, weight in weights.items():
        if weight.dim() < 2:
            directions[name] = torch.zeros_like(weight)
            continue
        drawn = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
        length = weight.norm(dim=-1, keepdim=True)
        directions[name] = nn.functional.normalize(drawn, dim=-1) * length
    return directions


@torch.no_grad()
def surface(
    model: nn.Module,
    loss: Callable[[Callable, Batch], Tensor],
    batch: Batch,
    distances: Float[Tensor, " side"],
    generator: torch.Generator,
) -> Float[Tensor, "side side"]:
    """Return the loss at weights + a first + b second, for all a (rows) and b of `distances`.

    The two directions are drawn by `direction`; the model itself is left as it is. Costs one
    forward pass a point. Source: Li et al. 2018, eq. 1.
    """
    weights = dict(model.named_parameters())
    first, second = direction(weights, generator), direction(weights, generator)

    def at(a: Tensor, b: Tensor) -> Tensor:
        moved = {name: w + a * first[name] + b * second[name] for name, w in weights.items()}
        return loss(lambda *inputs: functional_call(model, moved, inputs), batch)

    return torch.stack([torch.stack([at(a, b) for b in distances]) for a in distances])
