"""Optimizers: AdamW, which trains most language models, and Muon (lesson 10)."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn


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


QUINTIC = (3.4445, -4.7750, 2.0315)  # of Jordan et al. 2024: fast, with singular values near 1


def orthogonalise(
    gradient: Float[Tensor, "rows columns"], steps: int = 5
) -> Float[Tensor, "rows columns"]:
    """Bring all singular values of a matrix near 1: G = U S V^T becomes about U V^T.

    X <- a X + (b A + c A A) X with A = X X^T, from X = G / norm(G), by matrix products alone; the
    singular values end between 0.7 and 1.2. Source: Jordan et al. 2024, a Newton-Schulz iteration.
    """
    a, b, c = QUINTIC
    # take the short side as rows, so that A is small
    tall = gradient.shape[0] > gradient.shape[1]
    x = gradient.mT if tall else gradient
    # begin with singular values of at most 1
    x = x / (x.norm() + 1e-7)
    # push each singular value s towards 1: s <- a s + b s^3 + c s^5
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Step each matrix by its orthogonalised momentum, so that no direction is neglected.

    M <- mu M + (1 - mu) G;  W <- W - lr sqrt(max(1, rows / columns)) orthogonalise(N), where
    N = mu M + (1 - mu) G is Nesterov's look ahead. For the matrices inside a network; its tables
    and vectors are left to Adam. `dtype` is what it is computed in: Jordan et al. 2024, the source,
    take bfloat16. Raises ValueError for a parameter that is no matrix.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        lr: float = 0.02,
        momentum: float = 0.95,
        dtype: torch.dtype = torch.float32,
    ):
        matrices = list(matrices)
        if wrong := [tuple(matrix.shape) for matrix in matrices if matrix.dim() != 2]:
            raise ValueError(
                f"Muon steps matrices, not a parameter of the shape {wrong[0]}: leave vectors and "
                "tables to Adam"
            )
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "dtype": dtype})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Change every matrix that has a gradient."""
        for group in self.param_groups:
            mu = group["momentum"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                # average the gradients, and look one step ahead
                state = self.state[matrix]
                average = state.setdefault("average", torch.zeros_like(matrix))
                average.lerp_(matrix.grad, 1 - mu)
                ahead = matrix.grad.lerp(average, mu)
                # give all directions the same size, and tall matrices a larger one
                scale = max(1, matrix.shape[0] / matrix.shape[1]) ** 0.5
                update = orthogonalise(ahead.to(group["dtype"])).to(matrix)
                matrix.add_(update, alpha=-group["lr"] * scale)
