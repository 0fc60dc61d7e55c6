"""AdamW: one step of the optimiser that trains most language models (lesson 10)."""

from jaxtyping import Float
from torch import Tensor


def adamw_step(
    parameter: Float[Tensor, "*shape"],
    gradient: Float[Tensor, "*shape"],
    first: Float[Tensor, "*shape"],
    second: Float[Tensor, "*shape"],
    step: int,
    rate: float,
    decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """Return the parameter after step number `step`, counted from 1, and both averages.

    m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;  then, with m' = m / (1 - b1^step) and
    v' = v / (1 - b2^step), w <- (1 - rate decay) w - rate m' / (sqrt(v') + epsilon). `first` is m
    and `second` is v, both 0 before step 1. Nothing is changed in place. Source: Kingma & Ba 2015,
    algorithm 1; Loshchilov & Hutter 2019, algorithm 2 (the decay).
    """
    # move both running averages towards the gradient, and towards its square
    first = betas[0] * first + (1 - betas[0]) * gradient
    second = betas[1] * second + (1 - betas[1]) * gradient**2
    # they began at 0: divide by the share of the weights that gradients have so far
    mean = first / (1 - betas[0] ** step)
    square = second / (1 - betas[1] ** step)
    # shrink the parameter, apart from its gradient
    shrunk = (1 - rate * decay) * parameter
    # step against the mean gradient, in units of the gradients' usual size
    return shrunk - rate * mean / (square.sqrt() + epsilon), first, second
