"""How wrong results differ from the right ones, found by trying a list of differences on them.

A difference is named only if it explains every result that it is given: each finder is a
function from all the pairs to a sentence, or None. The first sentence is told, so the exact
differences come first and those that only say where come last.
"""

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_args, get_origin

import torch
from torch import Tensor

from course_lib.answers.answer import Foreign
from course_lib.checking.exercise import Case, Exercise
from course_lib.checking.trying.trial import same

Axes = tuple[str, ...]
BRIEF = 60  # characters of a list or a text that are shown


@dataclass(frozen=True)
class Pair:
    """A wrong result, the right one, the arguments by name, and the names of sizes.

    `axes` names the last axes of the result, or of each part of it, as the signature does.
    """

    got: Any
    expected: Any
    arguments: dict[str, Any]
    sizes: dict[str, int]
    tolerance: float
    axes: tuple[Axes, ...] = ()

    @property
    def names(self) -> Axes:
        """The names of the last axes of a result that is one tensor."""
        return self.axes[0] if len(self.axes) == 1 else ()

    def is_near(self, got: Any, expected: Any) -> bool:
        """Return True if two results are equal but for their dtype."""
        if isinstance(got, Tensor) and isinstance(expected, Tensor):
            if got.is_complex() or expected.is_complex() or got.shape != expected.shape:
                return False
            return not self.differs(got, expected).any() and bool(got.isfinite().all())
        return same(got, expected, self.tolerance)

    def differs(self, got: Tensor, expected: Tensor) -> Tensor:
        """Show where two tensors of the same shape differ."""
        near = {"rtol": self.tolerance, "atol": self.tolerance}
        return ~torch.isclose(got.double(), expected.double(), equal_nan=True, **near)

    def wrong(self) -> Tensor:
        """Show which numbers are wrong."""
        return self.differs(self.got, self.expected)


Finder = Callable[[list[Pair]], str | None]


def pair(exercise: Exercise, case: Case, got: Any, expected: Any) -> Pair:
    """Set a wrong result beside the right one."""
    names = [parameter.name for parameter in exercise.parameters]
    arguments = dict(zip(names, case.inputs, strict=False))
    return Pair(
        got, expected, arguments, sizes(exercise, case), exercise.tolerance, _axes(exercise)
    )


def difference(pairs: list[Pair], exact: bool = False) -> str | None:
    """Say what all these results have in common that the right ones have not, if anything.

    What is `exact` tells how a result came about, and not only where it is wrong.
    """
    if all(_has_parts(x) for x in pairs):
        return _parts(pairs, exact)
    if sentence := _kind(pairs):
        return sentence
    pairs = [replace(x, got=_tensor(x.got), expected=_tensor(x.expected)) for x in pairs]
    if not all(is_strided(y) for x in pairs for y in (x.got, x.expected)):
        return None
    if any(x.got.dtype != x.expected.dtype for x in pairs):
        return _dtype(pairs)
    if any(x.got.is_complex() for x in pairs):
        return None
    if any(x.got.shape != x.expected.shape for x in pairs):
        finders = OF_ANY_SHAPE if exact else (*OF_ANY_SHAPE, _shape)
    else:
        finders = EXACT if exact else (*EXACT, *PLACES)
    return next(filter(None, (find(pairs) for find in finders)), None)


def is_strided(value: Any) -> bool:
    """Return True for a tensor whose numbers can be read and compared."""
    return (
        isinstance(value, Tensor)
        and value.layout == torch.strided
        and not (value.is_meta or value.is_quantized or value.is_nested)
    )


# kinds


def _has_parts(x: Pair) -> bool:
    both = (x.got, x.expected)
    return all(isinstance(y, tuple) for y in both) and len(x.got) == len(x.expected) > 0


def _parts(pairs: list[Pair], exact: bool) -> str | None:
    """Look at each part of results that have several, and name the wrong one if there is one."""
    if all(len(x.got) > 1 and x.is_near(x.got[::-1], x.expected) for x in pairs):
        return "The parts of the result are in the reverse order."
    said: dict[int, str | None] = {}
    wrong_forms: set[int] = set()
    for place in range(max(len(x.expected) for x in pairs)):
        parts = [part(x, place) for x in pairs if place < len(x.got)]
        differing = [x for x in parts if not same(x.got, x.expected, x.tolerance)]
        if differing:
            said[place] = difference(differing, exact)
            wrong_forms |= {place} if all(map(_has_another_form, differing)) else set()
    # numbers that are free differ too, as those of matrices set by hand
    said = {place: said[place] for place in wrong_forms or said}
    if len(set(said.values())) != 1 or not (text := next(iter(said.values()))):
        return None
    which = f"part{'s' * (len(said) > 1)} {' and '.join(map(str, said))}"
    return f"In {which} of the result: {text[0].lower()}{text[1:]}"


def _has_another_form(x: Pair) -> bool:
    """Return True if a result is of another type or shape than the right one."""
    both = x.got, x.expected
    kinds = {kind(y) for y in both}
    return len(kinds) > 1 or len({y.shape for y in both if isinstance(y, Tensor)}) > 1


def part(x: Pair, place: int) -> Pair:
    """Return one part of a result that has several."""
    axes = x.axes[place : place + 1] if len(x.axes) > 1 else ()
    return replace(x, got=x.got[place], expected=x.expected[place], axes=axes)


def _kind(pairs: list[Pair]) -> str | None:
    """Name a result of another type: a list, None, a number."""
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
    return f"an {name}" if name[:1] in (*"aeiou",) else f"a {name}"


def _dtype(pairs: list[Pair]) -> str | None:
    """Name the dtype of results that should have another."""
    dtypes = {(x.got.dtype, x.expected.dtype) for x in pairs}
    if len(dtypes) > 1:
        return None
    [(got, expected)] = ([str(dtype).removeprefix("torch.") for dtype in x] for x in dtypes)
    if all(x.is_near(x.got, x.expected) for x in pairs):
        return f"The numbers are right, but their dtype is {got}, where {expected} is expected."
    return f"The dtype of the result is {got}, where {expected} is expected."


# shapes


def _shape(pairs: list[Pair]) -> str | None:
    """Describe results of another shape: an axis too many, too few, or of another size."""
    differing = [x for x in pairs if x.got.shape != x.expected.shape]
    if len(differing) < len(pairs):
        axis = _named_axis(differing)
        many = f"In {len(differing)} of {len(pairs)} wrong cases the shape is wrong"
        return f"{many}{axis}." if axis else None
    smallest = min(pairs, key=lambda x: x.expected.numel())
    said = _shapes(smallest)
    if all(
        x.got.numel() == x.expected.numel() and x.is_near(x.got.flatten(), x.expected.flatten())
        for x in pairs
    ):
        return f"The right numbers in the right order, but {said}."
    for name, axis in (("last", -1), ("first", 0), ("second last", -2)):
        for end, start in (("last", 0), ("first", 1)):
            if all(_lacks(x.got, x.expected, axis, start, x) for x in pairs):
                return f"The {end} entry along the {name} axis is missing: {said}."
            if all(_lacks(x.expected, x.got, axis, start, x) for x in pairs):
                return f"There is one entry too many along the {name} axis, the {end} one: {said}."
    for more, word in ((-1, "missing"), (1, "too many")):
        if all(x.got.dim() == x.expected.dim() + more for x in pairs):
            return f"{said[0].upper()}{said[1:]}: one axis is {word}."
    return f"{said[0].upper()}{said[1:]}{_named_axis(pairs)}."


def _shapes(x: Pair) -> str:
    return f"the shape is {tuple(x.got.shape)}, where {tuple(x.expected.shape)} is expected"


def _lacks(short: Tensor, long: Tensor, axis: int, start: int, x: Pair) -> bool:
    """Return True if one tensor is another without its first or its last entry along an axis."""
    if long.dim() < -min(axis, -1) or long.shape[axis] < 2:
        return False
    return x.is_near(short, long.narrow(axis, start, long.shape[axis] - 1))


def _named_axis(pairs: list[Pair]) -> str:
    """Name the size that the one wrong axis has, and that which it should have."""
    for axis, name in ((-1, "last"), (-2, "second last"), (-3, "third last")):
        shapes = [(list(x.got.shape), list(x.expected.shape)) for x in pairs]
        if any(len(got) != len(expected) or len(got) < -axis for got, expected in shapes):
            continue
        both = [(got.pop(axis), expected.pop(axis)) for got, expected in shapes]
        if all(got == expected for got, expected in shapes):
            names = [
                [n for n in pairs[0].sizes if [x.sizes.get(n) for x in pairs] == list(axes)]
                for axes in zip(*both, strict=True)
            ]
            if all(names):
                return f"; the {name} axis has the size of {names[0][0]}, and not of {names[1][0]}"
    return ""


# numbers


def _not_finite(pairs: list[Pair]) -> str | None:
    """Count NaN and infinities where numbers are expected."""
    for word, test in (("NaN", torch.isnan), ("infinite", torch.isinf)):
        counts = [int((test(x.got) & ~test(x.expected)).sum()) for x in pairs]
        if all(counts):
            x, count = min(zip(pairs, counts, strict=True), key=lambda each: each[0].got.numel())
            number = x.got.numel()
            if number == 1:
                return f"The result is {word}, where {shown(x.expected)} is expected."
            if count == number:
                return f"Every number of the result is {word}."
            return f"{count} of {number} numbers are {word}, where none should be."
    return None


def _along(axis: int, change: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor], Tensor]:
    """Change a tensor along an axis, if it has that axis and is longer than one there."""
    return lambda y: change(y, axis) if y.dim() >= -axis and y.shape[axis] > 1 else y


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "The sign is wrong: every number is minus what it should be.": torch.neg,
    "The result is turned round: True where False is expected, 1 where 0 is.": lambda y: 1 - y,
    "The result is transposed: its rows are the columns that are expected.": lambda y: (
        y.mT if y.dim() > 1 else y
    ),
    "The second and third last axes of the result have changed places.": lambda y: (
        y.transpose(-2, -3) if y.dim() > 2 else y
    ),
    **{
        f"The order is reversed along the {name}.": _along(axis, torch.Tensor.flip)
        for name, axis in (("last axis", -1), ("rows", -2))
    },
    **{
        f"An offset by one along the {name}: each entry is one place too far {way}.": _along(
            axis, lambda y, a, by=by: y.roll(by, a)
        )
        for name, axis in (("last axis", -1), ("rows", -2))
        for by, way in ((1, "on"), (-1, "back"))
    },
}


def _changed(pairs: list[Pair]) -> str | None:
    """Name the row of `CHANGES` that makes each result from the right one."""
    if _are_few(pairs):
        return None
    for sentence, change in CHANGES.items():
        if all(x.is_near(x.got, change(x.expected.double())) for x in pairs):
            return sentence
    return None


def _are_few(pairs: list[Pair]) -> bool:
    """Return True for so few numbers that anything could have become what came."""
    numbers = torch.cat([x.expected.flatten().double() for x in pairs])
    return len(numbers) < 3 or bool((numbers == numbers[0]).all())


def _argument(pairs: list[Pair]) -> str | None:
    """Name the argument that the result is, or the number that is everywhere in it."""
    if _are_few(pairs):
        return None
    for name in pairs[0].arguments:
        given = [_tensor(x.arguments.get(name)) for x in pairs]
        if all(is_strided(y) and x.is_near(x.got, y) for x, y in zip(pairs, given, strict=True)):
            return f"The result is `{name}` itself, as it came in."
    numbers = {y.item() for x in pairs for y in x.got.flatten().unique()}
    if len(numbers) == 1:
        return f"Every number of the result is {shown(torch.tensor(numbers.pop()))}."
    return None


def _factor(pairs: list[Pair]) -> str | None:
    """Name a constant factor, and the size that it comes from."""
    factors = []
    for x in pairs:
        if not x.got.is_floating_point():
            return None
        got, y = x.got.double().flatten(), x.expected.double().flatten()
        factor = float(got @ y / (y @ y)) if y.any() else math.nan
        if not math.isfinite(factor) or factor == 0 or not x.is_near(got, factor * y):
            return None
        factors.append(factor)
    formula = next(_formulas(pairs, factors), None)
    numbers = sum(int(x.expected.count_nonzero()) for x in pairs)
    if max(factors) - min(factors) <= 1e-4 * abs(factors[0]):
        if numbers < 2:
            return None
        named = f"; here {formula} = {factors[0]:.4g}" if formula else ""
        return f"Everywhere {factors[0]:.4g} times as large as it should be{named}."
    if formula is None:
        return None
    x, factor = min(zip(pairs, factors, strict=True), key=lambda each: each[0].got.numel())
    return f"Everywhere {formula} times as large as it should be; here that is {factor:.4g}."


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
            both = zip((x.sizes.get(name, 0) for x in pairs), factors, strict=True)
            if all(size > 1 and math.isclose(of(size), f, rel_tol=1e-4) for size, f in both):
                yield formula.format(name)


def _added(pairs: list[Pair]) -> str | None:
    """Name a constant that was added, or a whole number that is off by one."""
    if any(x.got.dtype == torch.bool for x in pairs):
        return None
    steps = torch.cat([(x.got.double() - x.expected.double()).flatten() for x in pairs])
    if not len(steps) or not steps.isfinite().all():
        return None
    first = float(steps[0])
    whole = abs(first) == 1 and all((x.expected == x.expected.floor()).all() for x in pairs)
    if not (whole or len(steps) > 1) or (steps - first).abs().max() > pairs[0].tolerance:
        return None
    said = "Off by one: everywhere 1" if abs(first) == 1 else f"Everywhere {abs(first):.4g}"
    return f"{said} too {'large' if first > 0 else 'small'}."


# places


def _one_way(pairs: list[Pair]) -> str | None:
    """Find a mask that shows too much or too little, and never both."""
    if any(x.got.dtype != torch.bool for x in pairs):
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
    return f"It is wrong only {where}." if where else None


def _places(pairs: list[Pair]) -> str | None:
    for where, places in _regions(pairs[0].names).items():
        regions = [places(x) for x in pairs]
        if all(
            region is not None
            and region.any()
            and not region.all()
            and not (x.wrong() & ~region).any()
            for x, region in zip(pairs, regions, strict=True)
        ):
            return where
    return None


def _all_but(pairs: list[Pair]) -> str | None:
    """Find the only row or column that is right."""
    if any(x.got.dim() < 2 for x in pairs):
        return None
    for axis, noun in ((-2, _row(pairs[0].names)), (-1, "column")):
        # of each row, or column: is anything wrong in it?
        wrong = [x.wrong().transpose(axis, -1).flatten(0, -2).any(0) for x in pairs]
        for end, place in (("first", 0), ("last", -1)):
            if all(len(w) > 1 and not w[place] and w.sum() == len(w) - 1 for w in wrong):
                return f"Only the {end} {noun} is right."
    return None


Region = Callable[[Pair], Tensor | None]
NOUNS = {"n": "token", "query": "query", "blocks": "block", "classes": "class"}


def _regions(names: Axes) -> dict[str, Region]:
    """Name the places that are looked at, the smallest first, by the names of the last axes."""
    row = _row(names)
    regions: dict[str, Region] = {
        "for queries that may look nowhere": _masked(lambda m: ~m.any(-1, keepdim=True)),
        "where the mask is False": _masked(torch.logical_not),
        "where the mask is True": _masked(lambda m: m),
        f"for the first {row}": _slices(-2, lambda i, n: i == 0),
        f"for the last {row}": _slices(-2, lambda i, n: i == n - 1),
        "in the first column": _slices(-1, lambda i, n: i == 0),
        "in the last column": _slices(-1, lambda i, n: i == n - 1),
    }
    if names[-2:] in (("query", "key"), ("n", "n")):
        regions |= {
            "on the diagonal": _diagonal(lambda i, j: i == j),
            "above the diagonal": _diagonal(lambda i, j: j > i),
            "below the diagonal": _diagonal(lambda i, j: j < i),
            "on the diagonal and above it": _diagonal(lambda i, j: j >= i),
            "on the diagonal and below it": _diagonal(lambda i, j: j <= i),
        }
    return regions


def _row(names: Axes) -> str:
    """Name what is along the second last axis: a token, a query, or no more than a row."""
    return NOUNS.get(names[-2], "row") if len(names) > 1 else "row"


def _slices(axis: int, chosen: Callable[[Tensor, int], Tensor]) -> Region:
    """Choose places along an axis by their number, in tensors that have this axis."""

    def places(x: Pair) -> Tensor | None:
        if x.got.dim() < -axis:
            return None
        size = x.got.shape[axis]
        shape = (size,) if axis == -1 else (size, 1)
        return chosen(torch.arange(size), size).reshape(shape).expand(x.got.shape)

    return places


def _diagonal(chosen: Callable[[Tensor, Tensor], Tensor]) -> Region:
    def places(x: Pair) -> Tensor | None:
        if x.got.dim() < 2:
            return None
        rows, columns = map(torch.arange, x.got.shape[-2:])
        return chosen(rows[:, None], columns).expand(x.got.shape)

    return places


def _masked(chosen: Callable[[Tensor], Tensor]) -> Region:
    """Choose places by the mask among the arguments, where it broadcasts to the result."""

    def places(x: Pair) -> Tensor | None:
        masks = [y for y in x.arguments.values() if isinstance(y, Tensor) and y.dtype == torch.bool]
        try:
            return chosen(masks[0]).expand(x.got.shape) if masks else None
        except (RuntimeError, IndexError):
            return None

    return places


OF_ANY_SHAPE: tuple[Finder, ...] = (_changed, _argument)
EXACT: tuple[Finder, ...] = (*OF_ANY_SHAPE, _factor, _added)
PLACES: tuple[Finder, ...] = (_one_way, _not_finite, _where, _all_but)


# one example


def example(x: Pair) -> str | None:
    """Show the first place where a wrong result differs: what is there, and what should be."""
    got, expected = x.got, x.expected
    if _has_parts(x):
        for place in range(len(got)):
            one = part(x, place)
            if not same(one.got, one.expected, x.tolerance) and (said := example(one)):
                return f"in part {place} of the result {said.replace('the result is', 'there is')}"
        return None
    if isinstance(got, list | str) and type(got) is type(expected):
        return _first_entry(got, expected, x.tolerance)
    if is_strided(got) and is_strided(expected):
        return _first_number(x)
    both = (got, expected)
    if all(isinstance(y, bool | int | float) or y is None for y in both):
        return f"the result is {shown(got)}, where {shown(expected)} is expected."
    return None


def _first_entry(got: Any, expected: Any, tolerance: float) -> str | None:
    """Show where a list or a text begins to differ."""
    what = ("character", 20) if isinstance(got, str) else ("entry", 1)
    both = enumerate(zip(got, expected, strict=False))
    place = next((i for i, (a, b) in both if not same(a, b, tolerance)), None)
    if place is None:
        if len(got) == len(expected):
            return None
        return f"the length is {len(got)}, where {len(expected)} is expected."
    ours, right = (repr(y[place : place + what[1]])[:BRIEF] for y in (got, expected))
    return f"from {what[0]} {place} on it is {ours}, where {right} is expected."


def _first_number(x: Pair) -> str | None:
    got, expected = x.got, x.expected
    if got.shape != expected.shape:
        return f"{_shapes(x)}."
    if got.dtype != expected.dtype:
        return f"the dtype is {got.dtype}, where {expected.dtype} is expected."
    wrong = x.wrong() if not got.is_complex() else got != expected
    if not wrong.any():
        return None
    place = wrong.nonzero()[0].tolist()
    there = f"{shown(got[tuple(place)])}, where {shown(expected[tuple(place)])} is expected."
    if not place:
        return f"the result is {there}"
    number, every = int(wrong.sum()), wrong.numel()
    many = f"{number} of {every} numbers {'is' if number == 1 else 'are'} wrong"
    many = many if number < every else "every number is wrong"
    return f"{many}: at {_place(place, x.names)} it is {there}"


def _place(place: list[int], names: Axes) -> str:
    """Name a place by the axes of the result: query 0, key 2."""
    if len(names) < len(place):
        return str(place)
    last = names[len(names) - len(place) :]
    return ", ".join(f"{name} {i}" for name, i in zip(last, place, strict=True))


def shown(value: Any) -> str:
    """Show a number in four digits."""
    value = value.item() if isinstance(value, Tensor) else value
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _tensor(value: Any) -> Any:
    """Return a number as a tensor, and anything else as it is."""
    if isinstance(value, bool):
        return torch.tensor(value)
    # whole numbers of more bits are no data: see `as_data`
    return torch.tensor(float(value), dtype=torch.float64) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= 64)


def sizes(exercise: Exercise, case: Case) -> dict[str, int]:
    """Name the sizes of a case, as the signature names the axes of its tensors."""
    named = dict(zip(_built_from(exercise), case.build, strict=False))
    for parameter, value in zip(exercise.parameters, case.inputs, strict=False):
        if isinstance(value, Tensor):
            names = _last_axes(parameter.annotation)
            named |= dict(zip(reversed(names), reversed(value.shape), strict=False))
        else:
            named[parameter.name] = value
    return {name: size for name, size in named.items() if type(size) is int}


@cache
def _built_from(exercise: Exercise) -> tuple[str, ...]:
    return tuple(inspect.signature(exercise.reference).parameters) if exercise.method else ()


@cache
def _axes(exercise: Exercise) -> tuple[Axes, ...]:
    """Name the last axes of the result, or of each of its parts."""
    function = getattr(exercise.reference, exercise.method or "", exercise.reference)
    annotation = inspect.signature(function).return_annotation
    parts = get_args(annotation) if get_origin(annotation) is tuple else (annotation,)
    return tuple(map(_last_axes, parts))


def _last_axes(annotation: Any) -> Axes:
    """Return the names of the last axes of a tensor, up to one that is none: `... query key`."""
    axes = getattr(annotation, "dim_str", "").split()
    return tuple(itertools.takewhile(str.isidentifier, reversed(axes)))[::-1]
