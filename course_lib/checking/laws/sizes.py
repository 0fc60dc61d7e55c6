"""The sizes that the cases of an exercise must have, by the axes that its signature names."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, get_args, get_origin

from torch import Tensor

from course_lib.answers.source import define
from course_lib.checking.exercise import Case, Exercise
from course_lib.checking.trial import cases

# the glossary's axes of positions
POSITIONS = ("n", "query", "key")
BATCH = "batch dimensions"


def missing_sizes(exercise: Exercise) -> Iterator[str]:
    """Name each size that no case has.

    Where the signature allows any number of batch dimensions, there is a case with none and one
    with two. Each axis of positions has length 1 once. Any two axes differ once, and those of the
    first matrix are once equal. A list is once empty and has once one entry, where the stub leaves
    that to the learner.
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
    yield from _missing_lengths(exercise)


def _missing_lengths(exercise: Exercise) -> Iterator[str]:
    asked = [question.case.inputs for question in cases(exercise, 0)]
    for place, parameter in enumerate(exercise.parameters):
        if get_origin(parameter.annotation) in (list, Sequence):
            lengths = {len(inputs[place]) for inputs in asked}
            before, value, after = asked[0][:place], asked[0][place], asked[0][place + 1 :]
            stub = define(exercise.stub, exercise.name, vars(inspect.getmodule(exercise.reference)))
            for length in {0, 1} - lengths:
                if _is_left_open(stub, (*before, value[:length], *after)):
                    yield f"no case has {length} of `{parameter.name}`"


def _is_left_open(stub: Callable, inputs: tuple[Any, ...]) -> bool:
    """Return True if the stub neither refuses these inputs nor answers for them."""
    try:
        stub(*inputs)
    except Exception as error:
        return isinstance(error, NotImplementedError)
    return False


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
