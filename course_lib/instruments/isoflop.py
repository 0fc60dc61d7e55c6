"""Models of one budget of operations: what lesson 12's page and its experiment share."""

from collections.abc import Iterable

import numpy as np

from course_lib.scaling import estimate_parameters, training_flops

LAYERS, CONTEXT, BATCH, VOCAB = 2, 64, 16, 84


def size(d_model: int) -> int:
    """Count the matrices of the blocks and of the output layer, which is the embedding too."""
    return estimate_parameters(LAYERS, d_model, d_model, 4 * d_model) + VOCAB * d_model


def steps(budget: float, d_model: int) -> int:
    """Return how many steps of BATCH windows a budget of operations pays for."""
    step = training_flops(size(d_model), BATCH * CONTEXT, LAYERS, CONTEXT, d_model)
    return round(budget / step)


def minimum(points: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return (N, loss) where the parabola through points (N, loss), over log N, is least."""
    parameters, losses = np.array([*points]).T
    bend, slope, height = np.polyfit(np.log(parameters), losses, 2)
    return float(np.exp(-slope / (2 * bend))), float(height - slope**2 / (4 * bend))
