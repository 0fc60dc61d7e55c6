"""What a comparison is, and how far a component and its oracle are apart."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import Tensor


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

    def query_key_value(self) -> tuple[Tensor, Tensor, Tensor]:
        """Draw queries, keys and values that fit each other."""
        batch, (n_q, n_k, d_k, d_v) = self.batch(), self.sizes(4)
        q, k = self.normal(*batch, n_q, d_k), self.normal(*batch, n_k, d_k)
        return q, k, self.normal(*batch, n_k, d_v)

    def mask(self, *shape: int) -> Tensor:
        """Draw a mask that shows half of the keys, and none to the first query."""
        shown = torch.rand(shape, generator=self._generator) < 1 / 2
        shown[..., 0, :] = False
        return shown


@dataclass(frozen=True)
class Comparison:
    """A component and its oracle. `results(inputs)` returns what each makes of the same inputs.

    `package` is where the oracle comes from, if that is needed for nothing else.
    """

    component: str
    oracle: str
    results: Callable[[Inputs], tuple]
    package: str | None = None

    @property
    def possible(self) -> bool:
        """Return True if the oracle is installed."""
        return self.package is None or find_spec(self.package) is not None


@dataclass(frozen=True)
class Row:
    """The largest absolute differences between a component and its oracle."""

    component: str
    oracle: str
    error: float
    gradient_error: float


def compare(component: Callable, oracle: str, package: str | None = None) -> Callable:
    """Make the function below the comparison of a component with an oracle."""
    name = f"{component.__module__.removeprefix('course_lib.')}.{component.__name__}"
    return lambda results: Comparison(name, oracle, results, package)


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


def _tensors(result: Tensor | tuple) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def _difference(ours: tuple, theirs: tuple) -> Tensor:
    gaps = [(a - b).detach().abs().max() for a, b in zip(ours, theirs, strict=True)]
    return torch.stack(gaps).max()
