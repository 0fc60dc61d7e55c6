"""Which change of its arguments would make the right answer give these wrong results.

Two arguments exchanged, one negated or forgotten, a matrix transposed: the reference is asked again
with each such change, until it gives what the answer gave, in every case. Where the answer raises
exceptions in some cases, the others are explained if there are any; if not, all sizes are made
equal, so that they fit.
"""

import inspect
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.answers.answer import Error, InProcess, Reply, Request
from course_lib.answers.probe_layers import Named
from course_lib.checking.exercise import Exercise
from course_lib.checking.telling.known_mistakes import equal_sizes, is_whole, same_rows
from course_lib.checking.trying.trial import Question, Trying, cases, is_float, same, same_reply

SECONDS = 1.0  # of the processor's time, for all changes together
MODULES = 8  # of a module of so many parts each part's weights are changed
LARGEST = 64  # of a size that is tried: the reference may take its square in time and memory


class Change(NamedTuple):
    """A change of a request, and what that is in words."""

    said: str
    change: Callable[[Request], Request]


def changed_arguments(tried: Trying, seed: int) -> str | None:
    """Say with which change of its arguments the reference does what an answer did, if any."""
    end = time.process_time() + SECONDS
    asked = cases(tried.exercise, seed)
    results = [question for question in asked if not tried.reply(question).error]
    if len(results) == len(asked):
        return _first(tried, results, 1, end)
    return _first(tried, results, 2, end) or _first(
        tried, equal_sizes(tried.exercise, seed), 1, end
    )


def _first(tried: Trying, asked: list[Question], least: int, end: float) -> str | None:
    """Name the first change that explains so many wrong results at least, found in time."""
    wrong = [question for question in asked if _is_wrong(tried, question)]
    if len(wrong) < least:
        return None
    # a wrong result tells more changes apart than a right one
    asked = [*wrong, *(question for question in asked if question not in wrong)]
    for number, change in enumerate(_changes(tried.exercise)):
        if time.process_time() > end:
            return None
        if _explains(tried, asked, number, least):
            return f"The result is what the right one would be {change.said}."
    return None


def _is_wrong(tried: Trying, question: Question) -> bool:
    """Return True for a result of the right kind whose numbers are wrong."""
    ours, expected = tried.reply(question), question.expected
    return is_whole(ours) and not same_reply(ours, expected, tried.exercise)


def _explains(tried: Trying, asked: list[Question], number: int, least: int) -> bool:
    """Return True if a change explains every result, so many of which are wrong at least."""
    exercise, wrong = tried.exercise, 0
    for question in asked:
        ours, theirs = tried.reply(question), _changed(exercise, question, number)
        if ours.error and theirs.error:
            continue
        if ours.error or theirs.error:
            return False
        if not same_rows(ours.output, theirs.output, question.expected.output, exercise):
            return False
        wrong += _is_wrong(tried, question) and same_reply(ours, theirs, exercise)
    return wrong >= least


@lru_cache(maxsize=16384)
def _changed(exercise: Exercise, question: Question, number: int) -> Reply:
    request = replace(_changes(exercise)[number].change(question.request), watch=(), settings=False)
    if _is_unchanged(question.request, request):
        return question.expected
    if _is_too_large(question.request, request):
        return Reply(error=Error("TooLarge", "a size that nobody asked for"))
    return InProcess(exercise.reference).run(request)


def _is_unchanged(before: Request, after: Request) -> bool:
    one, other = ((x.inputs, x.weights) for x in (before, after))
    return before.build is after.build and same(one, other, 0.0)


def _is_too_large(before: Request, after: Request) -> bool:
    """Return True if a whole number has grown, as a size does that was exchanged with a seed."""
    both = zip((*before.inputs, *before.build), (*after.inputs, *after.build), strict=False)
    return any(type(x) is int is type(y) and y > max(LARGEST, 2 * x) for x, y in both)


@lru_cache(maxsize=256)
def _changes(exercise: Exercise) -> list[Change]:
    """List the changes of an exercise's arguments and parameters, the likeliest first."""
    arguments: list[str | int] = list(range(len(exercise.parameters)))
    weights = cases(exercise, 0)[0].request.weights or {}
    modules: list[str | int] = list(dict.fromkeys(map(_module, weights)))
    # a larger module has too many pairs of parts
    modules = modules if len(modules) <= MODULES else []
    changes = list(_always(exercise))
    for places in (arguments, modules):
        pairs = [(a, b) for a, b in itertools.combinations(places, 2) if _fit(exercise, a, b)]
        changes += [_exchange(exercise, a, b) for a, b in pairs]
        changes += [
            Change(said.format(_name(exercise, place)), _at(place, change))
            for said, change in SINGLE.items()
            for place in places
        ]
        changes += [_instead(exercise, a, b) for a, b in [*pairs, *((b, a) for a, b in pairs)]]
    return changes


def _fit(exercise: Exercise, a: str | int, b: str | int) -> bool:
    """Return True for two arguments, and for parts of a module with weights of the same shapes."""
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


def _shown(value: Any) -> str:
    return f"`{getattr(value, '__name__', value)}`"


def _if_float(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: change(x) if is_float(x) or type(x) is float else x


def _if_whole(change: Callable[[int], int]) -> Callable[[Any], Any]:
    return lambda x: change(x) if type(x) is int else x


def _opposite(x: Any) -> Any:
    if isinstance(x, bool):
        return not x
    return ~x if _is_mask(x) else x


def _is_mask(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.bool


def _transposed(x: Any) -> Any:
    return x.mT if (is_float(x) or _is_mask(x)) and x.dim() > 1 else x


SINGLE: dict[str, Callable[[Any], Any]] = {
    "with {} the wrong way round, True for False": _opposite,
    "without {}": lambda x: None if isinstance(x, Tensor) and not is_float(x) else x,
    "with zeros for {}": _if_float(lambda x: 0 * x),
    "with {} transposed": _transposed,
    "with minus {}": _if_float(lambda x: -x),
    "with {} twice as large": _if_float(lambda x: 2 * x),
    "with {} half as large": _if_float(lambda x: x / 2),
    "with {} squared": _if_float(lambda x: x**2),
    "with the root of {}": _if_float(lambda x: abs(x) ** 0.5),
    "with 1 added to {}": _if_float(lambda x: x + 1),
    "with {} one larger": _if_whole(lambda n: n + 1),
    "with {} one smaller": _if_whole(lambda n: n - 1),
}
