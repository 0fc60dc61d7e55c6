"""LoRA: train a product of two thin matrices beside a weight that is frozen (lesson 17)."""

from collections.abc import Callable, Collection
from typing import cast

from jaxtyping import Float
from torch import Tensor, nn


class LowRankLinear(nn.Module):
    """Add a trained change of low rank to a frozen linear layer: W x + alpha/rank B A x.

    The given layer is kept as `linear`; its weight and bias get no gradients any more. The
    parameter `a`, of shape (rank, d_in), is drawn as `nn.Linear` draws its weight: uniformly
    between -1/sqrt(d_in) and 1/sqrt(d_in). The parameter `b`, of shape (d_out, rank), begins with
    zeros, so that the layer begins as the given one. Source: Hu et al. 2021, section 4.1, eq. 3;
    the paper draws `a` from a normal distribution, its code as here.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        # call the constructor of nn.Module, and keep the layer, frozen
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.alpha = alpha
        # make a, from d_in to the rank, and b, from there to d_out
        self.a = nn.Parameter(linear.weight.new_zeros(rank, linear.in_features))
        self.b = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        # draw a, and leave b zero
        nn.init.kaiming_uniform_(self.a, a=5**0.5)

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        """Apply the frozen layer, and add the scaled change."""
        # send x down to the rank, and up again
        change = x @ self.a.mT @ self.b.mT
        # scale it, and add it to what the frozen layer returns
        return self.linear(x) + self.alpha / len(self.a) * change


def merged(
    weight: Float[Tensor, "d_out d_in"],
    a: Float[Tensor, "rank d_in"],
    b: Float[Tensor, "d_out rank"],
    alpha: float,
) -> Float[Tensor, "d_out d_in"]:
    """Return the weight of one linear layer that does what weight, a and b do: W + alpha/rank B A.

    Source: Hu et al. 2021, section 4.1.
    """
    # multiply the two thin matrices
    change = b @ a
    # add the scaled product to a copy of the weight
    return weight + alpha / len(a) * change


def adapt(
    model: nn.Module, names: Collection[str], layer: Callable[[nn.Linear], nn.Module]
) -> list[nn.Parameter]:
    """Freeze a model, and put `layer(linear)` in the place of each linear layer of these names.

    A name is the attribute that holds the layer, such as "w_q". Returns the parameters that are
    trained. Raises ValueError where no linear layer has such a name.
    """
    linears = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Linear)
    ]
    if not any(name in names for _, name, _ in linears):
        there = ", ".join(sorted({name for _, name, _ in linears})) or "none"
        raise ValueError(f"no linear layer is called {' or '.join(names)}; there are: {there}")
    model.requires_grad_(False)
    for parent, name, linear in linears:
        if name in names:
            setattr(parent, name, layer(linear))
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def merge_all(model: nn.Module, alpha: float) -> None:
    """Put linear layers with merged weights in the place of all layers that `adapt` has put there.

    Such a layer has a `linear`, `a` and `b`; its `linear` gets the merged weight. Raises ValueError
    where there is none.
    """
    layers = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if all(hasattr(child, part) for part in ("linear", "a", "b"))
    ]
    if not layers:
        raise ValueError("no layer has a linear, a and b, so there is nothing to merge")
    for parent, name, child in layers:
        linear = cast(nn.Linear, child.linear)
        a, b = child.get_parameter("a").detach(), child.get_parameter("b").detach()
        weight = merged(linear.weight.detach(), a, b, alpha)
        linear.weight = nn.Parameter(weight, requires_grad=False)
        setattr(parent, name, linear)
