"""How wrong results differ from the right ones, found by trying a list of differences on them.

A difference is named only if it explains every result that it is given: each row of `TABLE` is a
function from all the pairs to what it found, or None. The first that finds something is the one
that is told, so the exact ones come first and those that only say where come last.
"""

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.answers.answer import Foreign
from course_lib.checking.exercise import Case, Exercise
from course_lib.checking.trying.trial import is_float, same


@dataclass(frozen=True)
class Pair:
    """A wrong result, the right one, the arguments by name, and the names of sizes."""

    got: Any
    expected: Any
    arguments: dict[str, Any]
    sizes: dict[str, int]
    tolerance: float

    def is_near(self, got: Any, expected: Any) -> bool:
        """Tell whether two results are equal as the exercise has it, dtype apart."""
        if isinstance(got, Tensor) and isinstance(expected, Tensor):
            if got.is_complex() or got.shape != expected.shape:
                return False
            got, expected = got.double(), expected.double()
            if not got.isfinite().all():
                return False
            return torch.allclose(got, expected, rtol=self.tolerance, atol=self.tolerance)
        return same(got, expected, self.tolerance)

    def wrong(self) -> Tensor:
        """Tell where two tensors of the same shape differ."""
        got, expected = self.got.double(), self.expected.double()
        return ~torch.isclose(got, expected, rtol=self.tolerance, atol=self.tolerance)


Finder = Callable[[list[Pair]], str | None]


def pair(exercise: Exercise, case: Case, got: Any, expected: Any) -> Pair:
    """Set a wrong result beside the right one."""
    names = [parameter.name for parameter in exercise.parameters]
    arguments = dict(zip(names, case.inputs, strict=False))
    return Pair(got, expected, arguments, sizes(exercise, case), exercise.tolerance)


def difference(pairs: list[Pair], table: tuple[Finder, ...] | None = None) -> str | None:
    """Say what all these results have in common that the right ones have not, if anything."""
    table = table or TABLE
    if found := _parts(pairs, table) or _kind(pairs):
        return found
    pairs = [_as_tensors(x) for x in pairs]
    if not all(isinstance(y, Tensor) for x in pairs for y in (x.got, x.expected)):
        return None
    if any(x.got.dtype != x.expected.dtype for x in pairs):
        return _dtype(pairs)
    return next(filter(None, (find(pairs) for find in table)), None)


# kinds


def _parts(pairs: list[Pair], table: tuple[Finder, ...]) -> str | None:
    """Look at each part of results that have several."""
    if not all(_is_tuple(x.got) and _is_tuple(x.expected) for x in pairs):
        return None
    if any(len(x.got) != len(x.expected) for x in pairs):
        return None
    if all(x.is_near(x.got[::-1], x.expected) for x in pairs):
        return "The parts of the result are in the reverse order."
    found = []
    for place in range(max(len(x.expected) for x in pairs)):
        parts = [
            replace(x, got=x.got[place], expected=x.expected[place])
            for x in pairs
            if place < len(x.got)
        ]
        differing = [x for x in parts if not same(x.got, x.expected, x.tolerance)]
        found.append(difference(differing, table) if differing else "")
    wrong = {text for text in found if text != ""}
    if len(wrong) == 1 and (text := wrong.pop()):
        places = [str(place) for place, text in enumerate(found) if text]
        which = f"part {places[0]}" if len(places) == 1 else f"parts {' and '.join(places)}"
        return f"In {which} of the result: {text[0].lower()}{text[1:]}"
    return None


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple)


def _kind(pairs: list[Pair]) -> str | None:
    """Find a result of another type: a list, None, a number."""
    kinds = {(kind(x.got), kind(x.expected)) for x in pairs}
    if len(kinds) > 1:
        return None
    [(got, expected)] = kinds
    if got == expected:
        return None
    said = f"The result is {got}, and should be {expected}"
    if got == "None":
        return "This returns None: is there a `return` on every way out?"
    if got == "a tuple":
        for place, which in enumerate(("first", "second")):
            if all(len(x.got) > place and x.is_near(x.got[place], x.expected) for x in pairs):
                return f"{said}: its {which} part is right."
    if all(isinstance(x.got, Tensor) and x.got.numel() == 1 for x in pairs):
        return f"{said}: `.item()` takes the number out of a tensor with one element."
    if "tensor" in expected and got in ("a list", "a tuple"):
        return f"{said}: `torch.stack` makes one tensor of several."
    if (got, expected) == ("a float", "an int"):
        return f"{said}: `/` gives a float, `//` a whole number."
    return f"{said}."


def kind(value: Any) -> str:
    """Name the type of a value, with its article."""
    name = value.type if isinstance(value, Foreign) else type(value).__name__
    if name in ("NoneType", "ndarray"):
        return {"NoneType": "None", "ndarray": "a numpy array"}[name]
    name = {"Tensor": "tensor"}.get(name, name)
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _dtype(pairs: list[Pair]) -> str | None:
    """Find a result of another dtype."""
    dtypes = {(x.got.dtype, x.expected.dtype) for x in pairs}
    if len(dtypes) > 1 or any(got == expected for got, expected in dtypes):
        return None
    [(got, expected)] = ([str(dtype).removeprefix("torch.") for dtype in x] for x in dtypes)
    if all(x.is_near(x.got, x.expected) for x in pairs):
        return f"The numbers are right, but their dtype is {got}, where {expected} is expected."
    return f"The dtype of the result is {got}, where {expected} is expected."


# shapes


def _shape(pairs: list[Pair]) -> str | None:
    """Find results of another shape: an axis too many, too few, or of another size."""
    differing = [x for x in pairs if x.got.shape != x.expected.shape]
    if not differing:
        return None
    if len(differing) < len(pairs):
        return _shape_elsewhere(differing, len(pairs))
    smallest = min(pairs, key=lambda x: x.expected.numel())
    got, expected = tuple(smallest.got.shape), tuple(smallest.expected.shape)
    said = f"the shape is {got}, where {expected} is expected"
    if all(x.got.numel() == x.expected.numel() for x in pairs) and all(
        x.is_near(x.got.flatten(), x.expected.flatten()) for x in pairs
    ):
        return f"The right numbers in the right order, but {said}."
    for name, axis in (("last", -1), ("first", 0), ("second last", -2)):
        for reduce in (torch.sum, torch.mean, torch.amax):
            if all(_is_reduced(x, reduce, axis) for x in pairs):
                word = {"amax": "maximum"}.get(reduce.__name__, reduce.__name__)
                return f"The result is the {word} of the right one over its {name} axis: {said}."
        if all(_cut(x, axis, 0, -1) or _cut(x, axis, 1, 0) for x in pairs):
            end = "last" if all(_cut(x, axis, 0, -1) for x in pairs) else "first"
            return f"The {end} entry along the {name} axis is missing: {said}."
        if all(_cut(_swapped(x), axis, 0, -1) or _cut(_swapped(x), axis, 1, 0) for x in pairs):
            end = "last" if all(_cut(_swapped(x), axis, 0, -1) for x in pairs) else "first"
            return f"There is one entry too many along the {name} axis, the {end} one: {said}."
    for shorter, word in ((0, "missing"), (1, "too many")):
        dims = [(x.got.dim(), x.expected.dim())[:: 1 - 2 * shorter] for x in pairs]
        if all(few + 1 == many for few, many in dims):
            return f"{said[0].upper()}{said[1:]}: one axis is {word}."
    return f"{said[0].upper()}{said[1:]}{_named_axis(pairs)}."


def _shape_elsewhere(pairs: list[Pair], number: int) -> str | None:
    """Say which axis has a wrong size, where it happens to be right in other cases."""
    if axis := _named_axis(pairs):
        return f"In {len(pairs)} of {number} wrong cases the shape is wrong{axis}."
    return None


def _swapped(x: Pair) -> Pair:
    return replace(x, got=x.expected, expected=x.got)


def _is_reduced(x: Pair, reduce: Callable, axis: int) -> bool:
    y = x.expected
    if y.dim() < -min(axis, -1) or y.numel() == 0:
        return False
    return any(x.is_near(x.got, reduce(y.double(), dim=axis, keepdim=k)) for k in (True, False))


def _cut(x: Pair, axis: int, start: int, stop: int) -> bool:
    """Tell whether a result is the right one without its first or last entry along an axis."""
    if x.expected.dim() < -min(axis, -1):
        return False
    size = x.expected.shape[axis]
    return size > 1 and x.is_near(x.got, x.expected.narrow(axis, start, size - 1))


def _named_axis(pairs: list[Pair]) -> str:
    """Name the size that the one wrong axis has, and that which it should have."""
    for axis, name in ((-1, "last"), (-2, "second last"), (-3, "third last")):
        others = [_without(x.got.shape, axis) == _without(x.expected.shape, axis) for x in pairs]
        if all(others) and all(x.got.dim() >= -axis for x in pairs):
            got, expected = (
                [n for n in pairs[0].sizes if all(x.sizes.get(n) == of(x) for x in pairs)]
                for of in (
                    lambda x, axis=axis: x.got.shape[axis],
                    lambda x, axis=axis: x.expected.shape[axis],
                )
            )
            if got and expected:
                return f"; the {name} axis has the size of {got[0]}, and not of {expected[0]}"
    return ""


def _without(shape: torch.Size, axis: int) -> list[int]:
    return [size for place, size in enumerate(shape) if place != len(shape) + axis]


# numbers


def _not_finite(pairs: list[Pair]) -> str | None:
    """Find NaN and infinities where numbers are expected."""
    if any(x.got.shape != x.expected.shape for x in pairs):
        return None
    for word, test in (("NaN", torch.isnan), ("infinite", torch.isinf)):
        counts = [int((test(x.got) & ~test(x.expected)).sum()) for x in pairs]
        if all(counts):
            x, count = min(zip(pairs, counts, strict=True), key=lambda each: each[0].got.numel())
            if count == x.got.numel():
                return f"Every number of the result is {word}."
            rows = test(x.got).flatten(0, -2).all(-1) if x.got.dim() > 1 else torch.zeros(1)
            if x.got.dim() > 1 and int(rows.sum()) * x.got.shape[-1] == count:
                every = len(rows)
                return f"{word} in {int(rows.sum())} of {every} rows, where numbers are expected."
            return f"{count} of {x.got.numel()} numbers are {word}, where none should be."
    return None


def _axis(change: Callable[..., Tensor], axis: int, *more: Any) -> Callable[[Tensor], Tensor]:
    """Change a tensor along an axis, if it has that axis and is longer than one there."""

    def changed(y: Tensor) -> Tensor:
        if y.dim() < -min(axis, -1) or y.shape[axis] < 2:
            return y
        return change(y, *more, axis)

    return changed


def _inverse(y: Tensor) -> Tensor:
    return 1 - y


def _turned(y: Tensor) -> Tensor:
    return y.mT if y.dim() > 1 else y


def _shares(y: Tensor) -> Tensor:
    return y / y.sum(-1, keepdim=True)


def _unit(y: Tensor) -> Tensor:
    return F.normalize(y, dim=-1) if y.dim() else y


def _centred(y: Tensor) -> Tensor:
    return y - y.mean(-1, keepdim=True) if y.dim() else y


def _normalised(y: Tensor) -> Tensor:
    return F.layer_norm(y, y.shape[-1:]) if y.dim() else y


AXES = (("last axis", -1), ("rows", -2), ("first axis", 0))
CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "The sign is wrong: every number is minus what it should be.": torch.neg,
    "The signs are lost: the result has the absolute value of what is expected.": torch.abs,
    "The result is turned round: True where False is expected, 1 where 0 is.": _inverse,
    "The result is transposed: its rows are the columns that are expected.": _turned,
    "The first two axes of the result have changed places.": lambda y: (
        y.transpose(0, 1) if y.dim() > 1 else y
    ),
    "The second and third last axes of the result have changed places.": lambda y: (
        y.transpose(-2, -3) if y.dim() > 2 else y
    ),
    **{
        f"The order is reversed along the {name}.": _axis(lambda y, a: y.flip(a), axis)
        for name, axis in AXES
    },
    **{
        f"An offset by one along the {name}: each entry is one place too far {way}, and the "
        f"{end} one comes round to the other end.": _axis(torch.roll, axis, by)
        for name, axis in AXES
        for by, way, end in ((1, "on", "last"), (-1, "back", "first"))
    },
    "Each number is the square of what is expected.": torch.square,
    "Each number is the root of what is expected: the square is missing.": torch.sqrt,
    "Each number is the exponential of what is expected.": torch.exp,
    "Each number is the logarithm of what is expected.": torch.log,
    "Each number is one divided by what is expected.": torch.reciprocal,
    "Negative numbers have become zero, and the rest is right.": torch.relu,
    "A tanh too many: the result is the tanh of what is expected.": torch.tanh,
    "A sigmoid too many: the result is the sigmoid of what is expected.": torch.sigmoid,
    "A softmax too many: the result is the softmax of what is expected.": lambda y: y.softmax(-1),
    "Each row is divided by its sum, once too often.": _shares,
    "Each row is brought to length one, which nobody asked for.": _unit,
    "The mean of each row is taken off, which nobody asked for.": _centred,
    "Each row is normalised once more, to mean 0 and variance 1.": _normalised,
    "The result is rounded down to whole numbers.": torch.floor,
    "The result is rounded to whole numbers.": torch.round,
    "The result is cut off to whole numbers.": torch.trunc,
    "The result is summed up step by step: a cumulative sum too many.": _axis(torch.cumsum, -1),
}


def _changed(pairs: list[Pair]) -> str | None:
    """Find a change of `CHANGES` that makes the result from the right one."""
    if _are_few(pairs):
        return None
    for sentence, change in CHANGES.items():
        if all(_is_changed(x, change) for x in pairs):
            return sentence
    return None


def _are_few(pairs: list[Pair]) -> bool:
    """Tell whether there are so few numbers that anything could have become what came."""
    numbers = torch.cat([x.expected.flatten().double() for x in pairs])
    return len(numbers) < 3 or _is_constant(numbers)


def _is_changed(x: Pair, change: Callable[[Tensor], Tensor]) -> bool:
    return x.is_near(x.got, change(x.expected.double()))


def _argument(pairs: list[Pair]) -> str | None:
    """Find a result that is an argument, or one with the same number everywhere."""
    if _are_few(pairs):
        return None
    for name in pairs[0].arguments:
        if all(x.is_near(x.got, _tensor(x.arguments.get(name))) for x in pairs):
            return f"The result is `{name}` itself, as it came in."
    firsts = [x.got.flatten()[:1] for x in pairs]
    numbers = {f"{y.item():g}" for y in firsts if len(y)}
    if all((x.got == y).all() for x, y in zip(pairs, firsts, strict=True)) and (
        len(numbers) == 1 or all(x.got.numel() > 1 and not _is_constant(x.expected) for x in pairs)
    ):
        what = numbers.pop() if len(numbers) == 1 else "the same"
        return f"Every number of the result is {what}."
    return None


def _term(pairs: list[Pair]) -> str | None:
    """Find an argument that was added or left out."""
    if any(x.got.shape != x.expected.shape or not x.got.is_floating_point() for x in pairs):
        return None
    for name in pairs[0].arguments:
        for sign, said in ((-1, f"`{name}` is missing from the sum"), (1, f"`{name}` was added")):
            if all(_is_off_by(x, x.arguments.get(name), sign) for x in pairs):
                return f"{said}: the result is what is expected {'+-'[sign < 0]} `{name}`."
    return None


def _mixed(pairs: list[Pair]) -> str | None:
    """Find a mixture of the right result and an argument, always in the same proportion."""
    if any(x.got.shape != x.expected.shape or not x.got.is_floating_point() for x in pairs):
        return None
    for name in pairs[0].arguments:
        given = [x.arguments.get(name) for x in pairs]
        both = zip(pairs, given, strict=True)
        fit = [y for x, y in both if isinstance(y, Tensor) and _fits(x, y)]
        if len(fit) < len(pairs):
            continue
        got, right, own = (
            torch.cat([y.double().flatten() for y in part])
            for part in ([x.got for x in pairs], [x.expected for x in pairs], fit)
        )
        if len(got) < 6 or not got.isfinite().all():
            continue
        parts = torch.stack([right, own], dim=-1)
        shares = torch.linalg.lstsq(parts, got).solution
        near = torch.allclose(parts @ shares, got, rtol=1e-4, atol=1e-5)
        if near and all(abs(share) > 0.01 for share in shares):
            one, other = (f"{float(share):.3g}" for share in shares)
            return f"The result is {one} times the right one plus {other} times `{name}`."
    return None


def _fits(x: Pair, argument: Tensor) -> bool:
    return is_float(argument) and argument.shape == x.got.shape


def _is_off_by(x: Pair, argument: Any, sign: int) -> bool:
    if not isinstance(argument, Tensor) or not argument.is_floating_point() or argument.dim() == 0:
        return False
    if argument.dim() > x.got.dim() or argument.shape != x.got.shape[-argument.dim() :]:
        return False
    return x.is_near(x.got, x.expected.double() + sign * argument.double())


def _is_constant(y: Tensor) -> bool:
    return bool((y == y.flatten()[0]).all())


def _miscounted(pairs: list[Pair]) -> str | None:
    """Find a count that is off by a product of the sizes, such as 4 n d^2, in every case."""
    if any(x.got.dim() or x.expected.dim() for x in pairs) or len(pairs) < 2:
        return None
    steps = [float(x.got) - float(x.expected) for x in pairs]
    names = [n for n in pairs[0].sizes if all(n in x.sizes for x in pairs)]
    products = (
        powers for powers in itertools.product(range(4), repeat=len(names)) if 0 < sum(powers) <= 4
    )
    for powers in sorted(products, key=sum):
        both = list(zip(names, powers, strict=True))
        counts = [math.prod(x.sizes[n] ** p for n, p in both) for x in pairs]
        if 0 in counts or len(set(counts)) < 2:
            continue
        factor = steps[0] / counts[0]
        whole = factor and (factor == round(factor) or factor == 0.5) and abs(factor) <= 8
        if whole and all(step == factor * n for step, n in zip(steps, counts, strict=True)):
            way = "large" if factor > 0 else "small"
            return f"Too {way} by {_product(abs(factor), both)}, in every wrong case."
    return None


def _product(factor: float, powers: list[tuple[str, int]]) -> str:
    """Write a product of sizes: 4 n d^2."""
    parts = [f"{n}^{p}" if p > 1 else n for n, p in powers if p]
    return " ".join([*([] if factor == 1 else [f"{factor:g}"]), *parts])


def _factor(pairs: list[Pair]) -> str | None:
    """Find a constant factor, and the size that it comes from."""
    if any(x.got.shape != x.expected.shape or not x.got.is_floating_point() for x in pairs):
        return None
    factors = []
    for x in pairs:
        got, y = x.got.double().flatten(), x.expected.double().flatten()
        factor = float(got @ y / (y @ y)) if y.any() else math.nan
        factors.append(factor)
        if not math.isfinite(factor) or factor == 0 or not x.is_near(got, factor * y):
            return None
    constant = max(factors) - min(factors) <= 1e-4 * abs(factors[0])
    numbers = sum(int(x.expected.count_nonzero()) for x in pairs)
    if constant and numbers > 1:
        named = next((f"; here {how} = {factors[0]:.4g}" for how in _formulas(pairs, factors)), "")
        return f"Everywhere {_times(factors[0])} as it should be{named}."
    for how in _formulas(pairs, factors):
        x, factor = min(zip(pairs, factors, strict=True), key=lambda each: each[0].got.numel())
        return f"Everywhere {how} times as large as it should be; here that is {factor:.4g}."
    if not constant and all(x.expected.count_nonzero() > 1 for x in pairs):
        return (
            f"In each case a multiple of what it should be: {min(factors):.3g} to "
            f"{max(factors):.3g} times."
        )
    return None


def _times(factor: float) -> str:
    return (
        "half as large"
        if math.isclose(factor, 0.5, rel_tol=1e-4)
        else f"{factor:.4g} times as large"
    )


FORMULAS: dict[str, Callable[[int], float]] = {
    "sqrt({})": math.sqrt,
    "1/sqrt({})": lambda size: size**-0.5,
    "{}": float,
    "1/{}": lambda size: 1 / size,
}


def _formulas(pairs: list[Pair], factors: list[float]) -> Iterator[str]:
    """Yield what the factors are, as formulas of a size."""
    for formula, of in FORMULAS.items():
        for name in pairs[0].sizes:
            sizes = [x.sizes.get(name, 0) for x in pairs]
            if all(
                size > 1 and math.isclose(of(size), factor, rel_tol=1e-4)
                for size, factor in zip(sizes, factors, strict=True)
            ):
                yield formula.format(name)


def _added(pairs: list[Pair]) -> str | None:
    """Find a constant that was added, or a whole number that is off by one."""
    if any(x.got.shape != x.expected.shape or x.expected.dtype == torch.bool for x in pairs):
        return None
    steps = [(x.got.double() - x.expected.double()).flatten() for x in pairs]
    first = float(steps[0][0])
    whole = abs(first) == 1 and all((x.expected == x.expected.floor()).all() for x in pairs)
    if (whole or sum(map(len, steps)) > 1) and all(
        x.is_near(y, torch.full_like(y, first)) for x, y in zip(pairs, steps, strict=True)
    ):
        way = "large" if first > 0 else "small"
        said = "Off by one: everywhere 1" if abs(first) == 1 else f"Everywhere {abs(first):.4g}"
        return f"{said} too {way}."
    return None


def _sums(pairs: list[Pair]) -> str | None:
    """Find rows that should sum to one, where something else does."""
    if any(x.got.shape != x.expected.shape or not x.got.is_floating_point() for x in pairs):
        return None
    if any(x.got.dim() == 0 or x.got.numel() == 0 for x in pairs):
        return None
    if not all(_are_shares(x, x.expected, -1) for x in pairs):
        return None
    if all(_are_shares(x, x.got, -1) for x in pairs):
        return None
    deep = [x for x in pairs if x.got.dim() > 1]
    for axis, name in ((-2, "columns sum"), (0, "numbers along the first axis sum")):
        if len(deep) == len(pairs) and all(_are_shares(x, x.got, axis) for x in pairs):
            return f"The {name} to one, and not the rows."
    if all(x.is_near(x.got.sum(), torch.ones(())) for x in pairs):
        return "All the numbers together sum to one, and not each row by itself."
    sums = torch.cat([x.got.sum(-1).flatten() for x in pairs])
    if not sums.isfinite().all():
        return None
    return f"The rows should sum to one, and they sum to {sums.min():.3g} up to {sums.max():.3g}."


def _are_shares(x: Pair, y: Tensor, axis: int) -> bool:
    sums = y.sum(axis)
    return bool((((sums - 1).abs() < 1e-4) | (sums == 0)).all() and (sums != 0).any())


def _slices(pairs: list[Pair]) -> str | None:
    """Find rows or columns that are multiples of the right ones, shifted, or in another order."""
    if any(x.got.shape != x.expected.shape or not x.got.is_floating_point() for x in pairs):
        return None
    for axis, name in ((-1, "column"), (-2, "row"), (0, "entry along the first axis")):
        long = [x for x in pairs if x.got.dim() >= -min(axis, -1) and x.got.shape[axis] > 1]
        if len(long) < len(pairs):
            continue
        for later, way in ((True, "late"), (False, "early")):
            if all(_is_shifted(x, axis, later) for x in pairs):
                return f"An offset by one: each {name} is one place too {way}."
        orders = [_order(x, axis) for x in pairs]
        if all(orders):
            order = orders[0] if all(x == orders[0] for x in orders) else None
            shown = f": {order}" if order else ""
            return f"The right {name}s, but in another order{shown}."
    return None


def _is_shifted(x: Pair, axis: int, later: bool) -> bool:
    size = x.got.shape[axis]
    ends = (
        x.got.narrow(axis, int(later), size - 1),
        x.expected.narrow(axis, int(not later), size - 1),
    )
    return size > 2 and x.is_near(*ends)


def _order(x: Pair, axis: int) -> list[int] | None:
    """Return which of the right slices each slice is, where each is another one."""
    got, expected = x.got.movedim(axis, 0), x.expected.movedim(axis, 0)
    order: list[int] = []
    for ours in got:
        places = [i for i, y in enumerate(expected) if i not in order and x.is_near(ours, y)]
        if not places:
            return None
        order.append(places[0])
    return order


def _shuffled(pairs: list[Pair]) -> str | None:
    """Find the right numbers in other places."""
    if all(
        x.got.is_floating_point()
        and x.got.numel() == x.expected.numel() > 2
        and x.is_near(x.got.flatten().sort()[0], x.expected.flatten().sort()[0])
        for x in pairs
    ):
        return "All the right numbers are there, but in other places: look at the order of axes."
    return None


def _multiples(pairs: list[Pair]) -> str | None:
    """Find rows that are the right ones times a factor, or plus a number, of their own."""
    if any(x.got.shape != x.expected.shape or x.got.dim() < 2 for x in pairs):
        return None
    if any(not x.got.is_floating_point() or min(x.got.shape[-2:]) < 2 for x in pairs):
        return None
    for axis, name in ((-1, "row"), (-2, "column")):
        # a multiple needs two numbers at least that fit
        if any(x.got.shape[axis] < 3 for x in pairs):
            continue
        scaled = [_row_factors(x, axis) for x in pairs]
        if all(factors is not None for factors in scaled):
            every = torch.cat([factors.flatten() for factors in scaled if factors is not None])
            return (
                f"Each {name} is the right one times a factor of its own, from "
                f"{every.min():.3g} to {every.max():.3g}."
            )
        steps = [x.got.double() - x.expected.double() for x in pairs]
        if all(
            x.is_near(y, y.narrow(axis, 0, 1).expand_as(y))
            for x, y in zip(pairs, steps, strict=True)
        ):
            return f"Each {name} is the right one plus a number of its own."
    return None


def _row_factors(x: Pair, axis: int) -> Tensor | None:
    got, y = x.got.double(), x.expected.double()
    factors = (got * y).sum(axis, keepdim=True) / (y * y).sum(axis, keepdim=True)
    right = factors.isfinite().all() and x.is_near(got, factors * y)
    return factors if right and (factors != 0).any() else None


# places


def _bools(pairs: list[Pair]) -> str | None:
    """Find a mask that shows all or nothing."""
    if any(x.got.dtype != torch.bool or x.got.shape != x.expected.shape for x in pairs):
        return None
    for got in (True, False):
        if all((x.got == got).all() for x in pairs):
            return f"Every entry of the result is {got}."
    return None


def _one_way(pairs: list[Pair]) -> str | None:
    """Find a mask that shows too much or too little, and never both."""
    if any(x.got.dtype != torch.bool or x.got.shape != x.expected.shape for x in pairs):
        return None
    for got in (True, False):
        if all((x.got[x.wrong()] == got).all() for x in pairs):
            where = _places(pairs)
            where = f", {where}," if where else ""
            return f"{got} where {not got} is expected{where} and never the other way round."
    return None


def _where(pairs: list[Pair]) -> str | None:
    """Find the only places that are wrong."""
    where = _places(pairs)
    return f"Right but for some places: it is wrong {where}." if where else None


def _places(pairs: list[Pair]) -> str | None:
    if any(x.got.shape != x.expected.shape for x in pairs):
        return None
    for sentence, places in PLACES.items():
        regions = [places(x) for x in pairs]
        if all(
            region is not None
            and region.any()
            and not region.all()
            and not (x.wrong() & ~region).any()
            for x, region in zip(pairs, regions, strict=True)
        ):
            return sentence
    return None


def _along(axis: int, chosen: Callable[[Tensor, int], Tensor]) -> Callable[[Pair], Tensor | None]:
    """Choose places along an axis by their number, in tensors that have this axis."""

    def places(x: Pair) -> Tensor | None:
        if x.got.dim() < -min(axis, -1) or (axis == 0 and x.got.dim() < 3):
            return None
        size = x.got.shape[axis]
        shape = [size if i == axis % x.got.dim() else 1 for i in range(x.got.dim())]
        return chosen(torch.arange(size), size).reshape(shape).expand(x.got.shape)

    return places


def _diagonal(chosen: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Pair], Tensor | None]:
    def places(x: Pair) -> Tensor | None:
        if x.got.dim() < 2:
            return None
        rows, columns = map(torch.arange, x.got.shape[-2:])
        return chosen(rows[:, None], columns).expand(x.got.shape)

    return places


def _masked(chosen: Callable[[Tensor], Tensor]) -> Callable[[Pair], Tensor | None]:
    """Choose places by the mask among the arguments, where it broadcasts to the result."""

    def places(x: Pair) -> Tensor | None:
        masks = [y for y in x.arguments.values() if isinstance(y, Tensor) and y.dtype == torch.bool]
        try:
            return chosen(masks[0]).expand(x.got.shape) if masks else None
        except RuntimeError:
            return None

    return places


PLACES: dict[str, Callable[[Pair], Tensor | None]] = {
    "in the rows of a query that may look nowhere": _masked(lambda m: ~m.any(-1, keepdim=True)),
    "where the mask is False": _masked(torch.logical_not),
    "where the mask is True": _masked(lambda m: m),
    "on the diagonal": _diagonal(lambda i, j: i == j),
    "one place above the diagonal": _diagonal(lambda i, j: j == i + 1),
    "one place below the diagonal": _diagonal(lambda i, j: j == i - 1),
    "in the first row": _along(-2, lambda i, n: i == 0),
    "in the last row": _along(-2, lambda i, n: i == n - 1),
    "in the first column": _along(-1, lambda i, n: i == 0),
    "in the last column": _along(-1, lambda i, n: i == n - 1),
    "in the first of a batch": _along(0, lambda i, n: i == 0),
    "in the last of a batch": _along(0, lambda i, n: i == n - 1),
    "above the diagonal": _diagonal(lambda i, j: j > i),
    "below the diagonal": _diagonal(lambda i, j: j < i),
    "on the diagonal and above it": _diagonal(lambda i, j: j >= i),
    "on the diagonal and below it": _diagonal(lambda i, j: j <= i),
    "beside the diagonal": _diagonal(lambda i, j: i != j),
    "in the columns of even number": _along(-1, lambda i, n: i % 2 == 0),
    "in the columns of odd number": _along(-1, lambda i, n: i % 2 == 1),
    "in the first half of the columns": _along(-1, lambda i, n: (i < n // 2) & (n % 2 == 0)),
    "in the second half of the columns": _along(-1, lambda i, n: (i >= n // 2) & (n % 2 == 0)),
    "where zero is expected": lambda x: x.expected == 0,
    "where a number below zero is expected": lambda x: x.expected < 0,
    "where a number above zero is expected": lambda x: (
        x.expected > 0 if x.expected.dtype != torch.bool else None
    ),
    "in all rows but the first": _along(-2, lambda i, n: i > 0),
    "in all rows but the last": _along(-2, lambda i, n: i < n - 1),
    "in all columns but the first": _along(-1, lambda i, n: i > 0),
    "in all columns but the last": _along(-1, lambda i, n: i < n - 1),
    "in all of a batch but the first": _along(0, lambda i, n: i > 0),
}


# rows that prove how a result came about, and rows that say what can be seen of it
EXACT: tuple[Finder, ...] = (
    _changed,
    _bools,
    _argument,
    _factor,
    _added,
    _term,
    _slices,
    _mixed,
    _miscounted,
)
TABLE: tuple[Finder, ...] = (
    *EXACT,
    _one_way,
    _shape,
    _not_finite,
    _sums,
    _multiples,
    _shuffled,
    _where,
)


def _as_tensors(x: Pair) -> Pair:
    return replace(x, got=_tensor(x.got), expected=_tensor(x.expected))


def _tensor(value: Any) -> Any:
    """Return a number as a tensor, and anything else as it is."""
    if isinstance(value, bool):
        return torch.tensor(value)
    return (
        torch.tensor(float(value), dtype=torch.float64) if isinstance(value, int | float) else value
    )


def sizes(exercise: Exercise, case: Case) -> dict[str, int]:
    """Name the sizes of a case, as the signature names the axes of its tensors."""
    named = dict(zip(_built_from(exercise), case.build, strict=False))
    for parameter, value in zip(exercise.parameters, case.inputs, strict=False):
        if isinstance(value, Tensor):
            axes = getattr(parameter.annotation, "dim_str", "").split()
            fixed = list(itertools.takewhile(str.isidentifier, reversed(axes)))
            named |= dict(zip(fixed, reversed(value.shape), strict=False))
        else:
            named[parameter.name] = value
    return {name: size for name, size in named.items() if type(size) is int}


@cache
def _built_from(exercise: Exercise) -> tuple[str, ...]:
    return tuple(inspect.signature(exercise.reference).parameters) if exercise.method else ()
