"""The sizes that the cases of an exercise must have, by the axes that its signature names."""

import inspect
from collections.abc import Iterator
from itertools import combinations
from typing import get_args

from torch import Tensor

from course_lib.checking.exercise import Case, Exercise
from course_lib.checking.run.trial import cases

# the glossary's axes of positions
POSITIONS = ("n", "query", "key")
BATCH = "batch dimensions"


def missing_sizes(exercise: Exercise) -> Iterator[str]:
    """Name each size that no case has.

    Where the signature allows any number of batch dimensions, there is a case with none and one
    with two. Each axis of positions has length 1 once. Any two axes differ once, and those of the
    first matrix are once equal.
    """
    seen = [_sizes(exercise, question.case) for question in cases(exercise, 0)]
    axes = list(dict.fromkeys(axis for sizes in seen for axis in sizes))
    if BATCH in axes:
        axes.remove(BATCH)
        numbers = {sizes[BATCH] for sizes in seen}
        yield from (f"no case has {n} batch dimensions" for n in (0, 2) if n not in numbers)
    for axis in axes:
        if axis in POSITIONS and not any(sizes.get(axis) == 1 for sizes in seen):
            yield f"no case has {axis} = 1"
    for a, b in combinations(axes, 2):
        both = [sizes for sizes in seen if a in sizes and b in sizes]
        if all(sizes[a] == sizes[b] for sizes in both):
            yield f"no case has {a} unlike {b}"
    if len(axes) > 1 and not any(sizes[axes[0]] == sizes[axes[1]] for sizes in seen):
        yield f"no case has {axes[0]} = {axes[1]}"


def _sizes(exercise: Exercise, case: Case) -> dict[str, int]:
    """Map each axis of a case's tensors to its size; an axis that broadcasts is left out."""
    sizes: dict[str, int] = {}
    for parameter, value in zip(exercise.parameters, case.inputs, strict=False):
        if isinstance(value, Tensor) and (axes := _axes(parameter)):
            # an input of any shape has no batch
            if axes[0] in ("...", "*batch") and len(axes) > 1:
                sizes.setdefault(BATCH, value.dim() - len(axes) + 1)
            sizes |= {
                axis: size
                for axis, size in zip(reversed(axes), reversed(value.shape), strict=False)
                if axis.isidentifier()
            }
    return sizes


def _axes(parameter: inspect.Parameter) -> list[str]:
    """Read the axes of a tensor from its annotation, which may be of a tensor or None."""
    allowed = (parameter.annotation, *get_args(parameter.annotation))
    return next((x.dim_str.split() for x in allowed if hasattr(x, "dim_str")), [])
