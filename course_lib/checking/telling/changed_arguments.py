"""What else the right answer would have needed to give these wrong results.

Two arguments exchanged, one negated or forgotten, a matrix transposed; a slip in the formula: the
reference is asked again with each such change, until it gives what the answer gave, in every case.
Where the answer raises exceptions in some cases, the others are explained if there are any;
if not, all sizes are made equal, so that they fit.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from course_lib.answers.answer import Error, InProcess, Reply, Request
from course_lib.answers.probe_layers import Named
from course_lib.checking.exercise import Case, Exercise
from course_lib.checking.telling.difference import EXACT, difference, pair, sizes
from course_lib.checking.telling.known_mistakes import equal_sizes, is_whole, same_rows
from course_lib.checking.telling.slips import slips
from course_lib.checking.trying.trial import Question, Trying, cases, is_float, same, same_reply

SMALL = 6  # modules of so many parts have all choices of them tried
LARGEST = 64  # of a size that is tried: the reference may take its square in time and memory


def _as_it_is(value: Any) -> Any:
    return value


class Change(NamedTuple):
    """A change of a request, or of the reference, or of its result, and what that is in words."""

    said: str
    change: Callable[[Request], Request] = _as_it_is
    reference: Callable | None = None
    result: Callable[[Any], Any] = _as_it_is


def as_if(tried: Trying, seed: int) -> str | None:
    """Say with which change of its arguments the reference does what an answer did, if any."""
    exercise = tried.exercise
    asked = cases(exercise, seed)
    results = [question for question in asked if not _raises(tried, question)]
    raises = len(results) < len(asked)
    formulas = not raises and any(_is_number(question.expected.output) for question in asked)
    if said := _first(tried, results, least=2 if raises else 1, formulas=formulas):
        return said
    if not raises:
        return None
    asked = equal_sizes(exercise, seed)
    # with equal sizes, too many formulas come to the same
    return _first(tried, asked, least=1, formulas=False) or _with_equal_sizes(tried, asked)


def _first(tried: Trying, asked: list[Question], least: int, formulas: bool) -> str | None:
    """Name the first change that explains so many wrong results at least."""
    wrong = [question for question in asked if _is_wrong(tried, question)]
    if len(wrong) < least:
        return None
    # a wrong result tells more changes apart than a right one
    asked = [*wrong, *(question for question in asked if question not in wrong)]
    for number, change in enumerate(_changes(tried.exercise)):
        if (formulas or not change.reference) and _explains(tried, asked, number, least):
            return f"The result is what the right one would be {change.said}."
    return None


def _is_number(output: Any) -> bool:
    """Tell a number and floats from bits and lists of places: too many formulas come to those."""
    return type(output) is int or any(is_float(x) or type(x) is float for x in tree_leaves(output))


def _with_equal_sizes(tried: Trying, asked: list[Question]) -> str | None:
    """Say what differs where all sizes are equal, and nothing is raised."""
    exercise, both = tried.exercise, [(x.case, tried.reply(x), x.expected) for x in asked]
    pairs = [
        pair(exercise, case, ours.output, right.output)
        for case, ours, right in both
        if not ours.error and not same_reply(ours, right, exercise)
    ]
    found = difference(pairs, EXACT) if len(pairs) > 1 else None
    if found is None:
        return None
    return f"With all sizes equal it raises nothing: {found[0].lower()}{found[1:]}"


def _raises(tried: Trying, question: Question) -> bool:
    return bool(tried.reply(question).error) and not question.expected.error


def _is_wrong(tried: Trying, question: Question) -> bool:
    """Tell whether the result is a wrong one, with all that it is to have."""
    ours, expected = tried.reply(question), question.expected
    return is_whole(ours) and not expected.error and not same_reply(ours, expected, tried.exercise)


def _explains(tried: Trying, asked: list[Question], number: int, least: int = 1) -> bool:
    """Tell whether a change explains all results, so many of which are wrong and whole at least.

    There are many formulas, so of a slip one wrong result is not enough.
    """
    exercise, wrong = tried.exercise, 0
    for question in asked:
        ours, theirs = tried.reply(question), _changed(exercise, question, number)
        if question.expected.error or (ours.error and theirs.error):
            continue
        right = question.expected.output
        if ours.error or theirs.error:
            return False
        if not same_rows(ours.output, theirs.output, right, exercise):
            return False
        wrong += _is_wrong(tried, question) and same_reply(ours, theirs, exercise)
    return wrong >= least + (_changes(exercise)[number].reference is not None)


@lru_cache(maxsize=16384)
def _changed(exercise: Exercise, question: Question, number: int) -> Reply:
    _, change, reference, result = _changes(exercise)[number]
    request = replace(change(question.request), watch=(), settings=False)
    if reference is None and result is _as_it_is and _is_unchanged(question.request, request):
        return question.expected
    if _is_too_large(question.request, request):
        return Reply(error=Error("TooLarge", "a size that nobody asked for"))
    reply = InProcess(reference or exercise.reference).run(request)
    return replace(reply, output=result(reply.output))


def _is_unchanged(before: Request, after: Request) -> bool:
    one, other = ((x.inputs, x.weights) for x in (before, after))
    return before.build is after.build and same(one, other, 0.0)


def _is_too_large(before: Request, after: Request) -> bool:
    """Tell whether a whole number has grown, as a size does that was exchanged with a seed."""
    both = zip((*before.inputs, *before.build), (*after.inputs, *after.build), strict=False)
    return any(type(x) is int is type(y) and y > max(LARGEST, 2 * x) for x, y in both)


@lru_cache(maxsize=256)
def _changes(exercise: Exercise) -> list[Change]:
    """List every change that the arguments and parameters of an exercise allow."""
    places: list[str | int] = list(range(len(exercise.parameters)))
    weights = cases(exercise, 0)[0].request.weights or {}
    places += list(dict.fromkeys(_module(name) for name in weights))
    pairs = [(a, b) for a, b in itertools.combinations(places, 2) if _fit(exercise, a, b)]
    return [
        *(_exchange(exercise, a, b) for a, b in pairs),
        *(_order(exercise, order) for order in _orders(exercise)),
        *(
            Change(said.format(_name(exercise, place)), _at(place, change))
            for said, change in SINGLE.items()
            for place in places
        ),
        *(_instead(exercise, a, b) for a, b in [*pairs, *((b, a) for a, b in pairs)]),
        *_as_at_first(places),
        *_always(exercise),
        *_together([*_as_at_first(places), *_always(exercise)]),
        *_constant(exercise),
        *_products(exercise),
        *_all_transposed(exercise, places),
        *_backwards(exercise),
        *_causal(exercise),
        *(Change(said, reference=reference) for said, reference in slips(exercise)),
    ]


def _fit(exercise: Exercise, a: str | int, b: str | int) -> bool:
    """Tell whether both are arguments, or parts of a module with weights of the same shapes."""
    if isinstance(a, str) and isinstance(b, str):
        request = cases(exercise, 0)[0].request
        one, other = ({n: w.shape for n, w in _get(request, x).items()} for x in (a, b))
        return one == other
    return type(a) is type(b)


def _module(weight: str) -> str:
    """Name the part of a module that a weight belongs to: its own, or that of a layer in it."""
    return weight.rpartition(".")[0] or weight


def _name(exercise: Exercise, place: str | int) -> str:
    return f"`{exercise.parameters[place].name if isinstance(place, int) else place}`"


def _get(request: Request, place: str | int) -> Any:
    """Return an argument, or the weights of a part of the module, without its name."""
    if isinstance(place, int):
        return request.inputs[place] if place < len(request.inputs) else None
    weights = (request.weights or {}).items()
    return {name.removeprefix(place): w for name, w in weights if _module(name) == place}


def _set(request: Request, place: str | int, value: Any) -> Request:
    if isinstance(place, str):
        own = {f"{place}{name}": w for name, w in value.items()}
        return replace(request, weights={**(request.weights or {}), **own})
    if place >= len(request.inputs):
        return request
    inputs = (*request.inputs[:place], value, *request.inputs[place + 1 :])
    return replace(request, inputs=inputs)


def _at(place: str | int, change: Callable[[Any], Any]) -> Callable[[Request], Request]:
    def changed(request: Request) -> Request:
        value = _get(request, place)
        if isinstance(value, dict):
            return _set(request, place, {name: change(w) for name, w in value.items()})
        return _set(request, place, change(value))

    return changed


def _exchange(exercise: Exercise, a: str | int, b: str | int) -> Change:
    names = f"{_name(exercise, a)} and {_name(exercise, b)}"
    return Change(
        f"with {names} exchanged",
        lambda request: _set(_set(request, a, _get(request, b)), b, _get(request, a)),
    )


def _instead(exercise: Exercise, a: str | int, b: str | int) -> Change:
    return Change(
        f"with {_name(exercise, b)} in the place of {_name(exercise, a)}",
        lambda request: _set(request, a, _get(request, b)),
    )


def _as_at_first(places: list[str | int]) -> Iterator[Change]:
    """Forget the gain and the bias of a norm: they are ones and zeros before they learn."""
    own: dict[str, Callable[[Tensor], Tensor]] = {"gain": torch.ones_like, "bias": torch.zeros_like}
    if own.keys() <= set(places):

        def change(request: Request) -> Request:
            weights = request.weights or {}
            new = {name: own[name](w) if name in own else w for name, w in weights.items()}
            return replace(request, weights=new)

        yield Change("without `gain` and `bias`", change)


def _always(exercise: Exercise) -> Iterator[Change]:
    """Give an optional argument its default always, or one of the constructor's its usual value."""
    said = "with `{}` ignored, and {} always"
    for place, parameter in enumerate(exercise.parameters):
        if parameter.default is not parameter.empty:
            change = _at(place, lambda _, usual=parameter.default: usual)
            yield Change(said.format(parameter.name, _shown(parameter.default)), change)
    first = cases(exercise, 0)[0].case
    built = inspect.signature(exercise.reference).parameters.values() if exercise.method else ()
    for place, parameter in enumerate(built):
        usual = first.build[place] if place < len(first.build) else parameter.default
        change = partial(_built, place=place, usual=usual, name=parameter.name)
        yield Change(said.format(parameter.name, _shown(usual)), change)


def _built(request: Request, place: int, usual: Any, name: str) -> Request:
    """Build from the usual value, where one is given."""
    build = tuple(x for x in request.build if not (isinstance(x, Named) and x.name == name))
    if place < len(build) and not isinstance(build[place], Named):
        build = (*build[:place], usual, *build[place + 1 :])
    return replace(request, build=build)


def _together(changes: list[Change]) -> Iterator[Change]:
    """Make two changes at once."""
    for one, other in itertools.combinations(changes, 2):

        def change(request: Request, one: Change = one, other: Change = other) -> Request:
            return other.change(one.change(request))

        yield Change(f"{one.said}, and {other.said}", change)


def _constant(exercise: Exercise) -> Iterator[Change]:
    """Take one whole number always, whatever is given."""
    for place, parameter in enumerate(exercise.parameters):
        for number in (2, 3):
            change = _at(place, _if_whole(lambda _, number=number: number))
            yield Change(f"with {number} for `{parameter.name}`, whatever it is", change)


def _products(exercise: Exercise) -> Iterator[Change]:
    """Multiply an argument by a matrix among the others first, or a matrix by an argument."""
    places = range(len(exercise.parameters))
    for a, b in itertools.permutations(places, 2):
        names = (exercise.parameters[a].name, exercise.parameters[b].name)
        for target, name in zip((a, b), names, strict=True):
            said = f"with `{names[0]} @ {names[1]}` in the place of `{name}`"
            yield Change(said, _times(a, b, target))


def _times(a: int, b: int, target: int) -> Callable[[Request], Request]:
    def change(request: Request) -> Request:
        left, right = _get(request, a), _get(request, b)
        if not (is_float(left) and is_float(right) and right.dim() == 2):
            return request
        if not left.dim() or left.shape[-1] != len(right):
            return request
        return _set(request, target, left @ right)

    return change


def _all_transposed(exercise: Exercise, places: list[str | int]) -> Iterator[Change]:
    """Read several matrices of a module the other way round, or forget all of its biases."""
    parts = [place for place in places if isinstance(place, str)]
    turned = _if_float(_transposed)
    # of a larger module there are too many choices
    for number in range(2, len(parts) + 1 if len(parts) <= SMALL else 0):
        for some in itertools.combinations(parts, number):

            def change(request: Request, some: tuple = some) -> Request:
                for place in some:
                    request = _at(place, turned)(request)
                return request

            names = [_name(exercise, place) for place in some]
            yield Change(f"with {', '.join(names[:-1])} and {names[-1]} transposed", change)

    def without_biases(request: Request) -> Request:
        weights = (request.weights or {}).items()
        return replace(request, weights={n: 0 * w if n.endswith("bias") else w for n, w in weights})

    if parts:
        yield Change("without any bias", without_biases)


def _shown(value: Any) -> str:
    return f"`{getattr(value, '__name__', value)}`"


def _backwards(exercise: Exercise) -> Iterator[Change]:
    """Read an argument from its end to its beginning, and put each result in its place."""
    for place in range(len(exercise.parameters)):
        said = f"with {_name(exercise, place)} read from its end to its beginning"
        backwards = _if_float(_reversed)
        yield Change(said, _at(place, backwards), result=backwards)


def _causal(exercise: Exercise) -> Iterator[Change]:
    """Mask causally where no mask is given, or always."""
    for place, parameter in enumerate(exercise.parameters):
        allowed = (parameter.annotation, *get_args(parameter.annotation))
        axes = next((x.dim_str.split()[-2:] for x in allowed if hasattr(x, "dim_str")), [])
        if type(None) not in allowed or len(axes) < 2:
            continue

        def change(
            request: Request, always: bool | None, place: int = place, axes: list[str] = axes
        ) -> Request:
            named = sizes(exercise, Case("", request.inputs, request.build))
            rows, columns = (named.get(axis.strip("#"), 1) for axis in axes)
            given, mask = _get(request, place), torch.ones(rows, columns, dtype=torch.bool).tril()
            if given is not None and always is not None:
                mask = given & mask if always else given
            left_out = [None] * (place - len(request.inputs))
            inputs = (*request.inputs[:place], *left_out, mask, *request.inputs[place + 1 :])
            return replace(request, inputs=inputs)

        said = f"if {_name(exercise, place)} were causal"
        yield Change(f"{said} where none is given", partial(change, always=False))
        yield Change(f"{said} besides what is given", partial(change, always=True))
        yield Change(f"{said} whatever is given", partial(change, always=None))


def _if_float(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: change(x) if is_float(x) or type(x) is float else x


def _if_whole(change: Callable[[int], int]) -> Callable[[Any], Any]:
    return lambda x: change(x) if type(x) is int else x


def _opposite(x: Any) -> Any:
    if isinstance(x, bool):
        return not x
    return ~x if isinstance(x, Tensor) and x.dtype.is_signed is False and not is_float(x) else x


def _is_mask(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.bool


def _in_front(x: Any) -> Any:
    """Put the True entries of each row of a mask first."""
    if not _is_mask(x) or x.dim() == 0:
        return x
    return x.sort(dim=-1, descending=True, stable=True).values


def _without(end: str) -> Callable[[Any], Any]:
    """Leave out the first or the last row of a tensor of several."""

    def change(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.dim() < 2 or x.shape[-2] < 2:
            return x
        return x[..., 1:, :] if end == "first" else x[..., :-1, :]

    return change


def _transposed(x: Any) -> Any:
    return x.mT if isinstance(x, Tensor) and x.dim() > 1 else x


def _shared(x: Any) -> Any:
    return x / max(1, len(x)) if isinstance(x, Tensor) and x.dim() else x


def _reversed(x: Any) -> Any:
    return x.flip(-2) if isinstance(x, Tensor) and x.dim() > 1 else x


SINGLE: dict[str, Callable[[Any], Any]] = {
    "with {} the wrong way round, True for False": _opposite,
    "without {}": lambda x: None if isinstance(x, Tensor) and not is_float(x) else x,
    "with zeros for {}": _if_float(lambda x: 0 * x),
    "with {} transposed": lambda x: _transposed(x) if is_float(x) or _is_mask(x) else x,
    "with the True entries of each row of {} moved to its beginning": _in_front,
    "without the first row of {}": _if_float(_without("first")),
    "without the last row of {}": _if_float(_without("last")),
    "with minus {}": _if_float(lambda x: -x),
    "with {} twice as large": _if_float(lambda x: 2 * x),
    "with {} half as large": _if_float(lambda x: x / 2),
    "with {} divided by its length": _if_float(_shared),
    "with {} squared": _if_float(lambda x: x**2),
    "with the root of {}": _if_float(lambda x: abs(x) ** 0.5),
    "with the rows of {} in the reverse order": _if_float(_reversed),
    "with 1 added to {}": _if_float(lambda x: x + 1),
    "with {} one larger": _if_whole(lambda n: n + 1),
    "with {} one smaller": _if_whole(lambda n: n - 1),
    "with {} twice as large, a whole number": _if_whole(lambda n: 2 * n),
    "with 1 for {}": _if_whole(lambda n: 1),
    "with half of {}": _if_whole(lambda n: n // 2),
}


def _orders(exercise: Exercise) -> Iterator[tuple[int, ...]]:
    """Yield each other order of the parts that are side by side along an axis such as 4*d_h."""
    for number in {_parts(parameter) for parameter in exercise.parameters} - {0}:
        yield from itertools.islice(itertools.permutations(range(number)), 1, None)


def _parts(parameter: inspect.Parameter) -> int:
    number, times, _ = getattr(parameter.annotation, "dim_str", "").split(" ")[-1].partition("*")
    return int(number) if times and number.isdigit() else 0


def _order(exercise: Exercise, order: tuple[int, ...]) -> Change:
    """Read the parts of all these arguments in another order."""
    places = [i for i, x in enumerate(exercise.parameters) if _parts(x) == len(order)]

    def change(request: Request) -> Request:
        for place in places:
            parts = _get(request, place).chunk(len(order), dim=-1)
            moved = torch.cat([parts[order.index(i)] for i in range(len(order))], dim=-1)
            request = _set(request, place, moved)
        return request

    numbers = " ".join(str(i + 1) for i in order)
    return Change(
        f"if the {len(order)} parts along the last axis were in the order {numbers}", change
    )
