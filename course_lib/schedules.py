"""Schedules: the learning rate of each step (lesson 11)."""


def noam(step: int, d_model: int, warm_up: int) -> float:
    """Return the paper's learning rate: d_model^(-1/2) min(step^(-1/2), step warm_up^(-3/2)).

    It rises linearly over the first `warm_up` steps, then falls as one over the root of the step.
    Steps count from 1. Source: Vaswani et al. 2017, eq. 3; named after Noam Shazeer. Raises
    ValueError for a step below 1.

    >>> [round(1000 * noam(step, 512, 4000), 3) for step in (1, 2000, 4000, 16000)]
    [0.0, 0.349, 0.699, 0.349]
    """
    if step < 1:
        raise ValueError(f"steps count from 1, so {step} is none: did you count them from 0?")
    # rise with the step while that is the smaller one, then fall with its root
    rising, falling = step * warm_up**-1.5, step**-0.5
    # make it smaller for a larger model
    return d_model**-0.5 * min(rising, falling)
