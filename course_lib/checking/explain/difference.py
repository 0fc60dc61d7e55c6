"""How wrong results differ from the right ones, found by trying a list of differences on them.

A difference is named only if it explains every result that it is given: each finder is a
function from all the pairs to a sentence, or None. The first sentence is told, so the exact
differences come first and those that only say where come last.
"""

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_args, get_origin

import torch
from torch import Tensor

from course_lib.answers.answer import BITS, Foreign
from course_lib.checking.exercise import Case, Exercise
from course_lib.checking.trial import same

Axes = tuple[str, ...]
BRIEF = 120  # characters of a list or a text that are shown


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
    # a result without what is free in it has other places than the answer's own
    in_place: bool = True

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
        """Show where two tensors of one shape differ: whole numbers, where they are not equal."""
        if not (got.is_floating_point() or expected.is_floating_point()):
            return got != expected
        near = {"rtol": self.tolerance, "atol": self.tolerance}
        return ~torch.isclose(got.double(), expected.double(), equal_nan=True, **near)

    def wrong(self) -> Tensor:
        """Show which numbers are wrong."""
        return self.differs(self.got, self.expected)


def pair(exercise: Exercise, case: Case, got: Any, expected: Any) -> Pair:
    """Set a wrong result beside the right one."""
    names = [parameter.name for parameter in exercise.parameters]
    arguments = dict(zip(names, case.inputs, strict=False))
    return Pair(
        got, expected, arguments, sizes(exercise, case), exercise.tolerance, _axes(exercise)
    )


def difference(pairs: list[Pair], exact: bool = False, held: Sequence[Pair] = ()) -> str | None:
    """Say what all these results have in common that the right ones have not, if anything.

    What is `exact` tells how a result came about, and not only where it is wrong. It has to be true
    of the results that `held` as well: what is said of every result is true of them all. The first
    pair is the one that is shown.
    """
    if all(_has_parts(x) for x in pairs):
        return _parts(pairs, exact, held)
    if sentence := _kind(pairs):
        return sentence
    pairs, held = ([*map(_as_tensors, some)] for some in (pairs, held))
    if not all(is_strided(y) for x in pairs for y in (x.got, x.expected)):
        return None
    if any(x.got.dtype != x.expected.dtype for x in pairs):
        return _dtype(pairs)
    if any(x.got.is_complex() for x in pairs):
        return None
    alike = all(x.got.shape == x.expected.shape for x in pairs)
    every = [*pairs, *(x for x in held if is_strided(x.got))]
    for find in (
        _changed,
        _argument,
        *((_factor, _added, _one_place_off) if alike else ()),
        _residual,
    ):
        if (said := find(pairs)) and find(every) == said:
            return said
    if exact:
        return None
    return _one_way(pairs) or _not_finite(pairs) if alike else _shape(pairs)


def _as_tensors(x: Pair) -> Pair:
    return replace(x, got=_tensor(x.got), expected=_tensor(x.expected))


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


def _parts(pairs: list[Pair], exact: bool, held: Sequence[Pair]) -> str | None:
    """Look at each part of results that have several, and name the wrong one if there is one."""
    said: dict[int, str | None] = {}
    wrong_forms: set[int] = set()
    for place in range(max(len(x.expected) for x in pairs)):
        parts = [part(x, place) for x in pairs if place < len(x.got)]
        right = [same(x.got, x.expected, x.tolerance) for x in parts]
        differing = [x for x, is_right in zip(parts, right, strict=True) if not is_right]
        if differing:
            alike = [x for x, is_right in zip(parts, right, strict=True) if is_right]
            alike += [part(x, place) for x in held if _has_parts(x) and place < len(x.got)]
            said[place] = difference(differing, exact, alike)
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
    if all(isinstance(x.got, Tensor) and x.got.numel() == 1 for x in pairs):
        return f"{said}: `.item()` takes the number out of a tensor with one element."
    if expected == "a tensor" and all(isinstance(x.got, list | tuple) for x in pairs):
        return f"{said}{_one_of_several(pairs)}."
    return f"{said}."


def _one_of_several(pairs: list[Pair]) -> str:
    """Say how a list or tuple of tensors becomes the one tensor that is expected, where it can."""
    if any(not x.got or not all(is_strided(y) for y in x.got) for x in pairs):
        return ""
    if all(len(x.got) == 1 and x.got[0].shape == x.expected.shape for x in pairs):
        comma = all(isinstance(x.got, tuple) for x in pairs)
        return ", the one inside" + (": a comma at the end makes a tuple" if comma else "")
    for place in range(min(len(x.got) for x in pairs)):
        if all(same(x.got[place], x.expected, x.tolerance) for x in pairs):
            return f": part {place} alone is right"
    if all(
        sorted((len(x.got), *x.got[0].shape)) == sorted(x.expected.shape)
        and len({y.shape for y in x.got}) == 1
        for x in pairs
    ):
        return ": `torch.stack` makes one tensor of several"
    return ""


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


def _shape(pairs: list[Pair]) -> str:
    """Show the first result of another shape, and say in how many cases there is one."""
    differing = [x for x in pairs if x.got.shape != x.expected.shape]
    said, alike = _shapes(differing[0]), len({*map(_shapes, differing)}) == 1
    if all(x.is_near(x.got.flatten(), x.expected.flatten()) for x in pairs):
        return f"The right numbers in the right order, but {said}."
    if len(differing) < len(pairs):
        said = said if alike else f"the shape differs: in one {said.replace('the shape', 'it')}"
        return f"In {len(differing)} of {len(pairs)} wrong results {said}."
    return f"{said[0].upper()}{said[1:]}."


def _shapes(x: Pair) -> str:
    return f"the shape is {tuple(x.got.shape)}, where {tuple(x.expected.shape)} is expected"


# numbers


def _not_finite(pairs: list[Pair]) -> str | None:
    """Count NaN and infinities where numbers are expected."""
    for word, test in (("NaN", torch.isnan), ("infinite", torch.isinf)):
        odd = [test(x.got) & ~test(x.expected) for x in pairs]
        if all(places.any() for places in odd):
            if all(test(x.got).all() for x in pairs):
                return f"Every number of the result is {word}."
            count, number = int(odd[0].sum()), odd[0].numel()
            are, they = ("is", "it") if count == 1 else ("are", "they")
            should = f"{they} should not" if test(pairs[0].expected).any() else "none should"
            return f"{count} of {number} numbers {are} {word}, where {should} be."
    return None


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "The sign is wrong: every number is minus what it should be.": torch.neg,
    "The result is inverted: True where False is expected, 1 where 0 is.": lambda y: 1 - y,
    "The result is transposed: its rows are the columns that are expected.": lambda y: (
        y.mT if y.dim() > 1 else y
    ),
    "The result went through a softmax: probabilities came, where the numbers before it are "
    "expected.": lambda y: y.softmax(-1) if y.dim() else y,
    "The result went through a logarithm of a softmax: log-probabilities came, where the numbers "
    "before it are expected.": lambda y: y.log_softmax(-1) if y.dim() else y,
    "The result went through a sigmoid, where the numbers before it are expected.": torch.sigmoid,
    "The result went through a tanh, where the numbers before it are expected.": torch.tanh,
    "Negative numbers were cut off at the end: 0 is where they are expected.": torch.relu,
    "An exponential was taken of the result, where the numbers before it are expected.": torch.exp,
    "A logarithm was taken of the result, where the numbers before it are expected.": torch.log,
    "The result was squared: each number is the square of what is expected.": torch.square,
    "A root was taken of the result, where the numbers before it are expected.": torch.sqrt,
    "The result is upside down: 1 / it is expected.": torch.reciprocal,
    "The order is reversed along the last axis.": lambda y: y.flip(-1) if y.dim() else y,
    "The order of the rows is reversed.": lambda y: y.flip(-2) if y.dim() > 1 else y,
}


def _changed(pairs: list[Pair]) -> str | None:
    """Name the row of `CHANGES` that makes each result from the right one."""
    if _are_few(pairs):
        return None
    for sentence, change in CHANGES.items():
        if all(x.is_near(x.got, change(x.expected.double())) for x in pairs):
            return sentence
    return None


def _one_place_off(pairs: list[Pair]) -> str | None:
    """Say so if each row is what is expected one row before it, or one after it."""
    if any(x.expected.dim() < 2 or x.expected.dtype == torch.bool for x in pairs):
        return None
    early, late = slice(None, -1), slice(1, None)
    for ours, right, said in (
        (late, early, "late: each row but the first is what is expected in the row before it."),
        (early, late, "early: each row but the last is what is expected in the row after it."),
    ):
        parts = [
            replace(x, got=x.got[..., ours, :], expected=x.expected[..., right, :]) for x in pairs
        ]
        if not _are_few(parts) and all(x.is_near(x.got, x.expected) for x in parts):
            return f"The results come one place {said}"
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


def _residual(pairs: list[Pair]) -> str | None:
    """Say so if an argument was added to each result, or is missing from it."""
    if _are_few(pairs):
        return None
    for name in pairs[0].arguments:
        both = [(x, _tensor(x.arguments.get(name))) for x in pairs]
        if not all(
            is_strided(y) and y.is_floating_point() and y.shape == x.expected.shape == x.got.shape
            for x, y in both
        ):
            continue
        if all(x.is_near(x.got, x.expected + y) for x, y in both):
            return f"`{name}` was added to the result, which should not have it in it."
        if all(x.is_near(x.got, x.expected - y) for x, y in both):
            return f"The result is right but for `{name}`, which is missing from the sum."
    return None


def _factor(pairs: list[Pair]) -> str | None:
    """Name a constant factor, or the size that a factor comes from."""
    # zeros are zeros whatever they are multiplied by
    pairs = [x for x in pairs if x.got.any() or x.expected.any()]
    factors = [factor for x in pairs if (factor := _ratio(x))]
    if len(factors) < len(pairs) or not factors:
        return None
    factor, said = factors[0], "Everywhere {} times as large as it should be"
    if max(factors) - min(factors) <= 1e-4 * abs(factor):
        several = sum(int(x.expected.count_nonzero()) for x in pairs) > 1
        if f"{factor:.4g}" == "1":  # some digits that four do not show
            return None
        means = (end for end, of in LOGARITHMS.items() if math.isclose(factor, of, rel_tol=1e-4))
        return f"{said.format(f'{factor:.4g}')}{next(means, '.')}" if several else None
    if found := next(_formulas(pairs, factors), None):
        formula, size = found
        times = f"{said.format(formula.format(size))}; in one case that is {factor:.4g}."
        # what is a size of a tensor has been summed over; a number that is given has not
        return times if size in pairs[0].arguments else f"{times}{EXCHANGED.get(formula, '')}"
    return None


def _ratio(x: Pair) -> float:
    """Return how many times a result is the right one, 0 where it is no multiple of it."""
    if not x.got.is_floating_point() or not x.expected.any():
        return 0.0
    got, y = x.got.double().flatten(), x.expected.double().flatten()
    factor = float(got @ y / (y @ y))
    return factor if math.isfinite(factor) and x.is_near(got, factor * y) else 0.0


LOGARITHMS = {
    ", which is 1 / ln 2: was a logarithm taken to the base 2?": 1 / math.log(2),
    ", which is 1 / ln 10: was a logarithm taken to the base 10?": 1 / math.log(10),
}
FORMULAS: dict[str, Callable[[int], float]] = {
    "sqrt({})": math.sqrt,
    "1/sqrt({})": lambda size: size**-0.5,
    "{}": float,
    "1/{}": lambda size: 1 / size,
}


EXCHANGED = {
    "{}": " Was a sum taken in the place of a mean?",
    "1/{}": " Was a mean taken in the place of a sum?",
}


def _formulas(pairs: list[Pair], factors: list[float]) -> Iterator[tuple[str, str]]:
    """Yield what the factors are, as formulas of a size, and the name of the size."""
    for formula, of in FORMULAS.items():
        for name in pairs[0].sizes:
            named = [x.sizes.get(name, 0) for x in pairs]
            both = zip(named, factors, strict=True)
            # of a size of 1 the factor is 1, and what is multiplied by it is right
            if all(size > 0 and math.isclose(of(size), f, rel_tol=1e-4) for size, f in both):
                yield formula, name


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


def _one_way(pairs: list[Pair]) -> str | None:
    """Find a mask that shows too much or too little, and never both."""
    if any(x.got.dtype != torch.bool for x in pairs):
        return None
    for got in (True, False):
        if all((x.got[x.wrong()] == got).all() for x in pairs):
            return f"{got} where {not got} is expected, and never the other way round."
    return None


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
        return _first_entry(x)
    if is_strided(got) and is_strided(expected):
        return _first_number(x)
    both = (got, expected)
    if all(isinstance(y, bool | int | float) or y is None for y in both):
        ours, right = told_apart(got, expected)
        return f"the result is {ours}, where {right} is expected."
    return None


def _first_entry(x: Pair) -> str | None:
    """Show where a list or a text begins to differ."""
    got, expected = x.got, x.expected
    both = enumerate(zip(got, expected, strict=False))
    place = next((i for i, (a, b) in both if not same(a, b, x.tolerance)), None)
    if place is None:
        if len(got) == len(expected):
            return None
        return f"the length is {len(got)}, where {len(expected)} is expected."
    if isinstance(got, str):
        ours, right = (repr(y[place : place + 20]) for y in (got, expected))
        return f"from character {place} on it is {ours}, where {right} is expected."
    ours, right = (repr(y[place])[:BRIEF] for y in (got, expected))
    which = f"entry {place}" if x.in_place else "what comes out"
    return f"{which} is {ours}, where {right} is expected."


def _first_number(x: Pair) -> str | None:
    got, expected = x.got, x.expected
    if got.shape != expected.shape:
        return f"{_shapes(x)}."
    if got.dtype != expected.dtype:
        ours, right = (str(y.dtype).removeprefix("torch.") for y in (got, expected))
        return f"the dtype is {ours}, where {right} is expected."
    wrong = x.wrong() if not got.is_complex() else got != expected
    if not wrong.any():
        return None
    place = wrong.nonzero()[0].tolist()
    ours, right = told_apart(got[tuple(place)].item(), expected[tuple(place)].item())
    there = f"{ours}, where {right} is expected."
    if not place:
        return f"the result is {there}"
    number, every = int(wrong.sum()), wrong.numel()
    many = f"{number} of {every} numbers {'is' if number == 1 else 'are'} wrong"
    many = many if number < every else "every number is wrong"
    where = f"at {_place(place, x.names)} it" if x.in_place else "it" if number == 1 else "one"
    return f"{many}: {where} is {there}"


def _place(place: list[int], names: Axes) -> str:
    """Name a place by the axes of the result: query 0, key 2."""
    if len(names) < len(place):
        return str(place)
    last = names[len(names) - len(place) :]
    return ", ".join(f"{name} {i}" for name, i in zip(last, place, strict=True))


def shown(value: Any, digits: int = 4) -> str:
    """Show a number in so many digits."""
    value = value.item() if isinstance(value, Tensor) else value
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def told_apart(got: Any, expected: Any) -> tuple[str, str]:
    """Show two numbers in as many digits as it takes to see that they differ."""
    for digits in range(4, 18):
        ours, right = shown(got, digits), shown(expected, digits)
        if ours != right:
            return ours, right
    return repr(got), repr(expected)


def _tensor(value: Any) -> Any:
    """Return a number as a tensor, and anything else as it is."""
    if isinstance(value, bool):
        return torch.tensor(value)
    return torch.tensor(float(value), dtype=torch.float64) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= BITS)


def sizes(exercise: Exercise, case: Case) -> dict[str, int]:
    """Name the sizes of a case, as the signature names the axes of its tensors."""
    named = dict(zip(_built_from(exercise), case.build, strict=False))
    for parameter, value in zip(exercise.parameters, case.inputs, strict=False):
        if isinstance(value, Tensor):
            names = last_axes(parameter.annotation)
            named |= dict(zip(reversed(names), reversed(value.shape), strict=False))
        else:
            named[parameter.name] = value
    return {name: size for name, size in named.items() if type(size) is int}


def sizes_without_a_name(exercise: Exercise, case: Case) -> set[int]:
    """Return the sizes of the axes that the signature leaves open, such as those of a batch."""
    return {
        size
        for parameter, value in zip(exercise.parameters, case.inputs, strict=False)
        if isinstance(value, Tensor)
        for size in value.shape[: value.dim() - len(last_axes(parameter.annotation))]
    }


@cache
def _built_from(exercise: Exercise) -> tuple[str, ...]:
    return tuple(inspect.signature(exercise.reference).parameters) if exercise.method else ()


@cache
def _axes(exercise: Exercise) -> tuple[Axes, ...]:
    """Name the last axes of the result, or of each of its parts."""
    function = getattr(exercise.reference, exercise.method or "", exercise.reference)
    annotation = inspect.signature(function).return_annotation
    parts = get_args(annotation) if get_origin(annotation) is tuple else (annotation,)
    return tuple(map(last_axes, parts))


def last_axes(annotation: Any) -> Axes:
    """Return the names of the last axes of a tensor, up to one that is none: `... query key`."""
    axes = getattr(annotation, "dim_str", "").split()
    return tuple(itertools.takewhile(str.isidentifier, reversed(axes)))[::-1]
