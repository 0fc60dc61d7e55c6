import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Largest(TorchDispatchMode):
    """Notes how many entries the largest tensor has that any operation returns."""

    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        returned = function(*args, **(kwargs or {}))
        sizes = [x.numel() for x in tree_leaves(returned) if isinstance(x, torch.Tensor)]
        self.numel = max([self.numel, *sizes])
        return returned


@pytest.fixture
def largest():
    return Largest()


@pytest.fixture
def draw():
    """Draw words of a shape; each call draws others."""
    generator = torch.Generator().manual_seed(0)

    def new(*shape, dtype=torch.float64):
        return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()

    return new


@pytest.fixture
def agree():
    """Hold two results, and their gradients for the same cotangent, against each other."""

    def hold(ours, theirs, *leaves):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
        cotangent = torch.randn(
            theirs.shape, generator=torch.Generator().manual_seed(1), dtype=theirs.dtype
        )
        gradients = (torch.autograd.grad(y, leaves, cotangent) for y in (ours, theirs))
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, atol=1e-10, rtol=0)

    return hold
