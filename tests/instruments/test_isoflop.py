"""Models of one budget cost the same, and a parabola's least point is found."""

import pytest

from course_lib.data import characters
from course_lib.instruments import isoflop
from course_lib.language_model import LanguageModel
from course_lib.scaling import training_flops


@pytest.mark.parametrize("d", [8, 12, 16, 24, 32])
def test_as_many_steps_as_a_budget_pays_for_cost_the_budget(d):
    tokens = isoflop.steps(3e10, d) * isoflop.BATCH * isoflop.CONTEXT
    spent = training_flops(isoflop.size(d), tokens, isoflop.LAYERS, isoflop.CONTEXT, d)
    assert spent == pytest.approx(3e10, rel=0.005)


def test_the_size_is_that_of_the_models_matrices_without_positions():
    model = LanguageModel(isoflop.VOCAB, isoflop.LAYERS, 16, 2, 64, isoflop.CONTEXT)
    matrices = [x.numel() for x in model.parameters() if x.dim() > 1]
    assert sum(matrices) - isoflop.CONTEXT * 16 == isoflop.size(16)
    assert len(characters.vocab()) == isoflop.VOCAB


def test_the_minimum_of_a_parabola_is_found_beside_every_point():
    points = [(n, 2 + 0.5 * (i - 1.25) ** 2) for i, n in enumerate((10, 20, 40, 80))]
    n, loss = isoflop.minimum(points)
    assert (n, loss) == (pytest.approx(10 * 2**1.25), pytest.approx(2))
