"""Cases at the edges of what a signature's shapes allow, made of an exercise's own cases.

`...` and `*batch` are any number of axes, each of any size, `#key` may be 1, and a row of numbers
may be zeros without being padding: an exercise's own cases are on other matters.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any, get_args

from torch import Tensor

from course_lib.checking.exercise import Case, Exercise

Shape = list[str]  # the names of a tensor's axes; of what is no tensor, none
Inputs = tuple[Any, ...]
TOKENS = ("n", "query", "key")  # axes that count tokens


def edges(exercise: Exercise, cases: list[Case]) -> Iterator[Case]:
    """Yield one case of each kind that applies, made of the largest that it can be of."""
    shapes = [_shape(parameter.annotation) for parameter in exercise.parameters]
    fullest = sorted((case for case in cases if not case.pieces), key=_axes, reverse=True)
    for name, change in EDGES.items():
        made = (
            replace(case, name=name, inputs=inputs)
            for case in fullest
            if (inputs := change(case.inputs, shapes))
        )
        if name not in exercise.no_edge and (case := next(made, None)):
            yield case


def shorter(exercise: Exercise, case: Case) -> Inputs:
    """Return inputs with texts one token shorter: what an object kept of them is too short."""
    shapes = [_shape(parameter.annotation) for parameter in exercise.parameters]
    # what `*args` take has no shape
    pairs = zip_longest(case.inputs, shapes[: len(case.inputs)], fillvalue=[])
    return tuple(_cut(x, shape) if isinstance(x, Tensor) else x for x, shape in pairs)


def _cut(x: Tensor, shape: Shape) -> Tensor:
    for axis, name in enumerate(reversed(shape), 1):
        if name.strip("#") in TOKENS and x.shape[-axis] > 1:
            x = x.narrow(-axis, 0, x.shape[-axis] - 1)
    return x


def _axes(case: Case) -> int:
    """Count the axes of all tensors of a case."""
    return sum(x.dim() for x in case.inputs if isinstance(x, Tensor))


def batch_axes(exercise: Exercise, case: Case) -> int:
    """Return how many axes of a batch its tensors have, at most."""
    shapes = (_shape(parameter.annotation) for parameter in exercise.parameters)
    pairs = zip(case.inputs, shapes, strict=False)
    batched = ((x, shape) for x, shape in pairs if shape[:1] in (["..."], ["*batch"]))
    return max((_own_axes(x, shape) for x, shape in batched if isinstance(x, Tensor)), default=0)


def _shape(annotation: Any) -> Shape:
    """Return the names of the axes that an annotation gives a tensor, or a tensor or None."""
    kinds = (annotation, *get_args(annotation))
    return next((x.dim_str.split() for x in kinds if hasattr(x, "dim_str")), [])


def _three_batch_axes(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Give tensors three batch axes, one of them of size 1; masks have one of size 1 more."""
    own = _batch_axes(inputs, shapes)
    if own not in (0, 1):
        return None

    def widened(x: Any, shape: Shape) -> Any:
        if not _is_batched(x, shape):
            return x
        more = [2, 1, 1 if shape[0].startswith("*#") else 2][: 3 - own]
        missing = own - _own_axes(x, shape)
        return x.expand(*more, *[1] * missing, *x.shape).clone()

    return _where_changed(inputs, shapes, widened)


def _batch_of_one(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Make a batch of one."""
    if _batch_axes(inputs, shapes) != 0:
        return None
    return _where_changed(
        inputs, shapes, lambda x, shape: x[None].clone() if _is_batched(x, shape) else x
    )


def _batch_axes(inputs: Inputs, shapes: list[Shape]) -> int | None:
    """Return how many batch axes all tensors have that may have any number of them, or None."""
    pairs = zip(inputs, shapes, strict=False)
    found = {
        _own_axes(x, shape)
        for x, shape in pairs
        if _is_batched(x, shape) and not shape[0].startswith("*#")
    }
    return found.pop() if len(found) == 1 else None


def _is_batched(x: Any, shape: Shape) -> bool:
    return isinstance(x, Tensor) and bool(shape) and shape[0].startswith(("...", "*"))


def _own_axes(x: Tensor, shape: Shape) -> int:
    return x.dim() - len(shape) + 1


def _row_of_zeros(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Make the second row of each tensor of floats zeros."""

    def zeroed(x: Any, shape: Shape) -> Any:
        if not (shape and isinstance(x, Tensor) and x.is_floating_point()):
            return x
        if x.dim() < 2 or x.shape[-2] < 2:
            return x
        x = x.clone()
        x[..., 1, :] = 0
        return x

    return _where_changed(inputs, shapes, zeroed)


def _one_column(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Keep the first column of a tensor whose columns may be one."""
    return _where_changed(inputs, shapes, lambda x, shape: _first(x, shape, -1))


def _one_row(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Keep the first row of a tensor whose rows may be one."""
    return _where_changed(inputs, shapes, lambda x, shape: _first(x, shape, -2))


def _first(x: Any, shape: Shape, axis: int) -> Any:
    may_be_one = len(shape) >= -axis and shape[axis].startswith("#")
    if not (may_be_one and isinstance(x, Tensor) and x.dim() >= -axis and x.shape[axis] > 1):
        return x
    return x.narrow(axis, 0, 1).clone()


def _where_changed(
    inputs: Inputs, shapes: list[Shape], change: Callable[[Any, Shape], Any]
) -> Inputs | None:
    """Return the inputs changed one by one, or None where none of them has changed."""
    changed = tuple(change(x, shape) for x, shape in zip(inputs, shapes, strict=False))
    return changed if any(a is not b for a, b in zip(changed, inputs, strict=False)) else None


EDGES: dict[str, Callable[[Inputs, list[Shape]], Inputs | None]] = {
    "three batch axes": _three_batch_axes,
    "a batch of one": _batch_of_one,
    "a row of zeros": _row_of_zeros,
    "a mask of one column": _one_column,
    "a mask of one row": _one_row,
}
