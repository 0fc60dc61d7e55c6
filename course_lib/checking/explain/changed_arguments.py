"""Which change of its arguments would make the right answer give these wrong results.

Two arguments exchanged, one negated or forgotten, a matrix transposed, another softmax: the
reference is asked again with each such change, until it gives what the answer gave, in every case.
Where the answer raises exceptions in some cases, the others are explained if there are any; if not,
all sizes are made equal, so that they fit.
"""

import inspect
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.answers.answer import Error, InProcess, Named, Reply, Request
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain.known_mistakes import equal_sizes, is_whole, same_rows
from course_lib.checking.stock_mistakes import Softmax, another_softmax
from course_lib.checking.trial import AnswerRun, Question, cases, is_float, same, same_reply

SECONDS = 1.0  # of the processor's time, for all changes together
LARGEST = 64  # of a size that is tried: the reference may take its square in time and memory


class Change(NamedTuple):
    """A change of a request, or of the softmax that the reference calls; and it in words."""

    said: str
    change: Callable[[Request], Request] = lambda request: request
    softmax: Softmax | None = None


def changed_arguments(tried: AnswerRun, seed: int) -> str | None:
    """Say with which change of its arguments the reference does what an answer did, if any."""
    end = time.process_time() + SECONDS
    asked = cases(tried.exercise, seed)
    results = [question for question in asked if not tried.reply(question).error]
    if len(results) == len(asked):
        said = _first(tried, results, 1, end)
    elif said := _first(tried, results, 2, end):
        return f"Where there is a result, it is what the right one would be {said}."
    else:
        said = _first(tried, equal_sizes(tried.exercise, seed), 1, end)
    return said and f"The result is what the right one would be {said}."


def _first(tried: AnswerRun, asked: list[Question], least: int, end: float) -> str | None:
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
            return change.said
    return None


def _is_wrong(tried: AnswerRun, question: Question) -> bool:
    """Return True for a result of the right kind whose numbers are wrong."""
    ours, expected = tried.reply(question), question.expected
    return is_whole(ours) and not same_reply(ours, expected, tried.exercise)


def _explains(tried: AnswerRun, asked: list[Question], number: int, least: int) -> bool:
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
    change = _changes(exercise)[number]
    request = replace(change.change(question.request), watch=(), settings=False)
    reference = another_softmax(exercise, change.softmax) if change.softmax else exercise.reference
    if reference is exercise.reference and _is_unchanged(question.request, request):
        return question.expected
    if _is_too_large(question.request, request):
        return Reply(error=Error("TooLarge", "a size that nobody asked for"))
    # the learner has nothing to do with what is warned of here
    with warnings.catch_warnings(action="ignore"):
        return InProcess(reference).run(request)


def _is_unchanged(before: Request, after: Request) -> bool:
    return before.build is after.build and same(before.inputs, after.inputs, 0.0)


def _is_too_large(before: Request, after: Request) -> bool:
    """Return True if a whole number has grown, as a size does that was exchanged with a seed."""
    both = zip((*before.inputs, *before.build), (*after.inputs, *after.build), strict=False)
    return any(type(x) is int is type(y) and y > max(LARGEST, 2 * x) for x, y in both)


@lru_cache(maxsize=256)
def _changes(exercise: Exercise) -> list[Change]:
    """List the changes of an exercise's arguments, the likeliest first."""
    names = [f"`{parameter.name}`" for parameter in exercise.parameters]
    pairs = list(itertools.combinations(range(len(names)), 2))
    exchanged = [
        Change(f"with {names[a]} and {names[b]} exchanged", partial(_moved, to={a: b, b: a}))
        for a, b in pairs
    ]
    single = [
        Change(said.format(name), partial(_at, place=place, change=change))
        for said, change in SINGLE.items()
        for place, name in enumerate(names)
    ]
    instead = [
        Change(f"with {names[b]} in the place of {names[a]}", partial(_moved, to={a: b}))
        for a, b in [*pairs, *((b, a) for a, b in pairs)]
    ]
    softmaxes = [Change(said, softmax=softmax) for said, softmax in SOFTMAXES.items()]
    return [*_always(exercise), *exchanged, *single, *softmaxes, *instead]


def _moved(request: Request, to: dict[int, int]) -> Request:
    """Put at some places what another place has."""
    given = request.inputs
    if max(*to, *to.values()) >= len(given):
        return request
    return replace(request, inputs=tuple(given[to.get(i, i)] for i in range(len(given))))


def _at(request: Request, place: int, change: Callable[[Any], Any]) -> Request:
    """Change one argument, where it is given."""
    given = request.inputs
    return replace(
        request, inputs=tuple(change(x) if i == place else x for i, x in enumerate(given))
    )


def _always(exercise: Exercise) -> Iterator[Change]:
    """Give an optional argument its default always, or one of the constructor's its usual value."""
    for place, parameter in enumerate(exercise.parameters):
        if parameter.default is not parameter.empty:
            change = partial(_at, place=place, change=lambda _, usual=parameter.default: usual)
            yield Change(_ignored(parameter.name, parameter.default), change)
    first = cases(exercise, 0)[0].case
    built = inspect.signature(exercise.reference).parameters.values() if exercise.method else ()
    for place, parameter in enumerate(built):
        usual = first.build[place] if place < len(first.build) else parameter.default
        change = partial(_built, place=place, usual=usual, name=parameter.name)
        yield Change(_ignored(parameter.name, usual), change)


def _built(request: Request, place: int, usual: Any, name: str) -> Request:
    """Build from the usual value, where one is given."""
    build = tuple(x for x in request.build if not (isinstance(x, Named) and x.name == name))
    if place < len(build) and not isinstance(build[place], Named):
        build = (*build[:place], usual, *build[place + 1 :])
    return replace(request, build=build)


def _ignored(name: str, usual: Any) -> str:
    """Say that an argument is ignored, and what is there in its place if that has a name."""
    shown = getattr(usual, "__name__", usual)
    return f"with `{name}` ignored" + ("" if shown == "<lambda>" else f", and `{shown}` always")


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


def _hidden(scores: Tensor, mask: Tensor | None, score: float = -torch.inf) -> Tensor:
    return scores if mask is None else scores.masked_fill(~mask, score)


def _shown_after(weights: Tensor, mask: Tensor | None) -> Tensor:
    return weights if mask is None else weights * mask


SOFTMAXES: dict[str, Softmax] = {
    "without a softmax": lambda scores, mask=None: _hidden(scores, mask, 0.0),
    "with the softmax over the queries": lambda scores, mask=None: _hidden(scores, mask).softmax(
        -2
    ),
    "with the softmax over the first axis": lambda scores, mask=None: _hidden(scores, mask).softmax(
        0
    ),
    "with sigmoid in the place of the softmax": lambda scores, mask=None: _shown_after(
        scores.sigmoid(), mask
    ),
    "with weights masked after the softmax": lambda scores, mask=None: _shown_after(
        scores.softmax(-1), mask
    ),
    "with masked scores of 0": lambda scores, mask=None: _hidden(scores, mask, 0.0).softmax(-1),
    "with 10,000 subtracted from masked scores": lambda scores, mask=None: (
        scores if mask is None else scores - 1e4 * ~mask
    ).softmax(-1),
    "with the mask added to the scores": lambda scores, mask=None: (
        scores if mask is None else scores + mask
    ).softmax(-1),
    "with a mean in the place of the softmax": lambda scores, mask=None: _hidden(
        torch.zeros_like(scores), mask
    ).softmax(-1),
}
SINGLE: dict[str, Callable[[Any], Any]] = {
    "with {} the wrong way round, True for False": _opposite,
    "without {}": lambda x: None if isinstance(x, Tensor) and not is_float(x) else x,
    "with {} transposed": _transposed,
    "with minus {}": _if_float(lambda x: -x),
    "with {} squared": _if_float(lambda x: x**2),
    "with 1 added to {}": _if_float(lambda x: x + 1),
    "with {} one larger": _if_whole(lambda n: n + 1),
    "with {} one smaller": _if_whole(lambda n: n - 1),
}
