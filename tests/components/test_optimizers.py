"""What holds of `course_lib.optimizers`."""

import pytest
import torch
from torch import nn

from course_lib.optimizers import Muon, orthogonalise


@pytest.mark.parametrize("shape", [(8, 8), (4, 32), (32, 4)])
def test_singular_values_come_near_one(shape):
    found = torch.linalg.svdvals(orthogonalise(torch.randn(shape, generator=seeded())))
    assert found.min() > 0.3
    assert found.max() < 1.3


def test_the_size_of_a_gradient_does_not_matter():
    gradient = torch.randn(6, 9, generator=seeded())
    torch.testing.assert_close(orthogonalise(gradient), orthogonalise(1000 * gradient))


def test_it_finds_the_least_of_a_quadratic():
    goal = torch.randn(5, 7, generator=seeded())
    matrix = nn.Parameter(torch.zeros(5, 7))
    optimizer = Muon([matrix], lr=0.1)
    for step in range(200):
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / 200)
        optimizer.zero_grad()
        (matrix - goal).square().sum().backward()
        optimizer.step()
    assert (matrix - goal).abs().max() < 0.05


def test_a_vector_is_refused():
    with pytest.raises(ValueError, match=r"steps matrices, not a parameter of the shape \(3,\)"):
        Muon([nn.Parameter(torch.zeros(3))])


def seeded():
    return torch.Generator().manual_seed(0)
