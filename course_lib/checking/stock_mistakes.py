"""Mistakes that many exercises know, made of the exercise's own reference: one line each.

`from course_lib.checking import stock_mistakes as stock`, and then below the exercise
`stock.mask_inverted(exercise)`. Each takes another sentence where the exercise has a better one.
A mistake that is none of these is `with_arguments` or `with_result` if it is the reference with
something changed before or after, and a function or class of its own under `@exercise.mistake`
if it is not.

What the engine tells as well for every exercise is no known mistake: an input changed in place, a
step in float32, a gradient cut off, a tensor on the wrong device.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from einops import EinopsError
from torch import Tensor, nn

from course_lib import attention
from course_lib.checking.exercise import Exercise

MISFIT = (RuntimeError, EinopsError)

Softmax = Callable[[Tensor, Tensor | None], Tensor]


def with_arguments(
    exercise: Exercise,
    name: str,
    sentence: str,
    change: Callable[..., Mapping[str, Any]],
    raises: type[BaseException] | tuple[type[BaseException], ...] = (),
) -> None:
    """Add a mistake: the reference on other arguments.

    `change` is given all arguments by their names, and returns those that it changes.
    """

    signature = inspect.Signature(exercise.parameters)

    def call(reference: Callable, *inputs: Any, **named: Any) -> Any:
        given = signature.bind(*inputs, **named)
        given.apply_defaults()
        given.arguments |= change(**given.arguments)
        return reference(*given.args, **given.kwargs)

    _add(exercise, name, sentence, call, raises)


def with_result(exercise: Exercise, name: str, sentence: str, change: Callable) -> None:
    """Add a mistake: what `change` makes of the reference's result."""

    def call(reference: Callable, *inputs: Any, **named: Any) -> Any:
        return change(reference(*inputs, **named))

    _add(exercise, name, sentence, call)


def with_softmax(
    exercise: Exercise,
    name: str,
    sentence: str,
    softmax: Softmax,
    raises: type[BaseException] | tuple[type[BaseException], ...] = (),
) -> None:
    """Add a mistake: the reference with another softmax of scores and mask, wherever it has one."""
    answer = another_softmax(exercise, softmax)
    exercise.mistake(_named(name, sentence, answer), raises=raises)


def another_softmax(exercise: Exercise, softmax: Softmax) -> Callable:
    """Return the reference as it is with another softmax, the very reference if it has none."""
    reference = exercise.reference
    if not isinstance(reference, type):
        return _knowing(reference, softmax)
    method = str(exercise.method)

    def build(self, *arguments: Any, **named: Any) -> None:
        reference.__init__(self, *arguments, **named)
        # a layer may keep the function by which it attends, or attend in its own method
        for layer in self.modules() if isinstance(self, nn.Module) else (self,):
            for key, value in list(vars(layer).items()):
                if isinstance(value, types.FunctionType):
                    setattr(layer, key, _knowing(value, softmax))
            if isinstance(layer, nn.Module) and layer is not self:
                forward = type(layer).forward
                if (other := _knowing(forward, softmax)) is not forward:
                    layer.forward = types.MethodType(other, layer)

    changed = {"__init__": build, method: _knowing(getattr(reference, method), softmax)}
    return type(reference.__name__, (reference,), changed)


def ignored(exercise: Exercise, argument: str = "mask", sentence: str = "") -> None:
    """Add a mistake: an argument that has a default is never used."""
    parameters = {x.name: x for x in exercise.parameters}
    default = parameters[argument].default
    with_arguments(
        exercise,
        f"{argument}_ignored",
        sentence or f"`{argument}` changes nothing: the result is the same without it.",
        lambda **_: {argument: default},
    )


def mask_inverted(exercise: Exercise, argument: str = "mask", sentence: str = "") -> None:
    """Add a mistake: True hides a key, and False shows it."""
    with_arguments(
        exercise,
        f"{argument}_read_inverted",
        sentence
        or f"`{argument}` is read the wrong way round: True means that the query may look at this "
        "key.",
        lambda **given: {argument: None if given[argument] is None else ~given[argument]},
    )


def mask_as_condition(exercise: Exercise, argument: str = "mask") -> None:
    """Add a mistake: `if mask` in place of `if mask is not None`."""
    with_arguments(
        exercise,
        f"{argument}_taken_as_condition",
        f"`if {argument}` asks a whole tensor for one truth value. What is it that you want to "
        "know: what the mask says, or whether one was given at all?",
        # this is the condition
        lambda **given: {argument: given[argument] if given[argument] else None},
        raises=RuntimeError,
    )


def exchanged(exercise: Exercise, one: str, other: str, sentence: str = "") -> None:
    """Add a mistake: two arguments have changed places."""
    with_arguments(
        exercise,
        f"{one}_and_{other}_exchanged",
        sentence or f"`{one}` and `{other}` have changed places.",
        lambda **given: {one: given[other], other: given[one]},
        raises=MISFIT,
    )


def unscaled(exercise: Exercise, query: str = "q", sentence: str = "") -> None:
    """Add a mistake: the scores are not divided by sqrt(d_k), the root of a query's size."""
    with_arguments(
        exercise,
        "not_scaled",
        sentence
        or "Behaves as if the scores were not divided by sqrt(d_k): the weights are sharper than "
        "they should be.",
        lambda **given: {query: given[query] * given[query].shape[-1] ** 0.5},
    )


def scaled_by_values(exercise: Exercise, query: str = "q", value: str = "v") -> None:
    """Add a mistake: the scores are divided by sqrt(d_v), the root of a value's size."""
    with_arguments(
        exercise,
        "scaled_by_values",
        "The scores were divided by sqrt(d_v), the size of a value. Values play no part in a "
        "score: which size do its two vectors have?",
        lambda **given: {
            query: given[query] * (given[query].shape[-1] / given[value].shape[-1]) ** 0.5
        },
    )


def unstable(exercise: Exercise, sentence: str = "") -> None:
    """Add mistakes: exponentials of scores from which no peak was subtracted.

    They are one mistake, with three ways to leave out what is masked and to divide by no 0.
    """

    def multiplied(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        exponentials = torch.exp(scores) if mask is None else torch.exp(scores) * mask
        total = exponentials.sum(-1, keepdim=True)
        return exponentials / total.masked_fill(total == 0, 1.0)

    def filled(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        exponentials = _hidden(torch.exp(scores), mask, 0.0)
        total = exponentials.sum(-1, keepdim=True)
        return exponentials / total.masked_fill(total == 0, 1.0)

    def chosen(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        exponentials = torch.exp(scores) if mask is None else torch.exp(scores) * mask
        total = exponentials.sum(-1, keepdim=True)
        return torch.where(total > 0, exponentials / total.clamp(min=1e-30), 0.0)

    for name, softmax in (("", multiplied), ("_and_filled", filled), ("_and_chosen", chosen)):
        with_softmax(
            exercise,
            f"no_peak_subtracted{name}",
            sentence
            or "Large scores give NaN: exp(90) no longer fits into a float32. What can be "
            "subtracted from all scores of a row without changing any weight?",
            softmax,
        )


def over_queries(exercise: Exercise, sentence: str = "") -> None:
    """Add mistakes: the weights of each key, not of each query, sum to one.

    There are four ways to mask such a softmax, which are one mistake.
    """

    def masked_after(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        weights = torch.softmax(scores, -2)
        return weights if mask is None else weights * mask

    def whole(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return attention.softmax(scores.mT, mask if mask is None else mask.mT).mT

    for name, softmax in (
        ("", lambda scores, mask=None: torch.softmax(_hidden(scores, mask, -torch.inf), -2)),
        ("_hidden_by_a_number", lambda x, mask=None: torch.softmax(_hidden(x, mask, -1e9), -2)),
        ("_masked_after", masked_after),
        ("_without_nan", whole),
    ):
        with_softmax(
            exercise,
            f"softmax_over_queries{name}",
            sentence
            or "The softmax ran over the queries: each key shares itself out, and the weights of "
            "one query do not sum to one. Along which axis are the keys?",
            softmax,
            # a row alone has no axis of queries
            raises=(IndexError, RuntimeError),
        )


def over_axis(exercise: Exercise, axis: int, sentence: str = "") -> None:
    """Add a mistake: the softmax runs over an axis counted from the front."""
    with_softmax(
        exercise,
        f"over_axis_{axis}",
        sentence
        or f"The softmax ran over axis {axis}, which is not the keys' axis in every case. Which "
        "number names the last axis, however many there are?",
        lambda scores, mask=None: torch.softmax(_hidden(scores, mask, -torch.inf), axis),
        raises=IndexError,
    )


def nowhere_is_nan(exercise: Exercise, sentence: str = "") -> None:
    """Add a mistake: a row with every key masked is NaN."""
    with_softmax(
        exercise,
        "nan_where_nothing_is_seen",
        sentence
        or "A query that may look nowhere gives NaN: the softmax of nothing but minus infinities "
        "divides 0 by 0. It should get zeros.",
        lambda scores, mask=None: torch.softmax(_hidden(scores, mask, -torch.inf), -1),
    )


def nowhere_is_everywhere(exercise: Exercise, sentence: str = "") -> None:
    """Add a mistake: a row with every key masked shares its weight out equally."""
    with_softmax(
        exercise,
        "mean_where_nothing_is_seen",
        sentence
        or "A query that may look nowhere gets the mean of all values: where every score is the "
        "same large negative number, no key is worse than another. It should get zeros.",
        lambda scores, mask=None: torch.softmax(_hidden(scores, mask, -1e9), -1),
    )


def masked_after(exercise: Exercise, sentence: str = "") -> None:
    """Add a mistake: weights are set to zero after the softmax has shared them out."""

    def softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        weights = torch.softmax(scores, -1)
        return weights if mask is None else weights * mask

    with_softmax(
        exercise,
        "masked_after_the_softmax",
        sentence
        or "The masked weights were set to zero after the softmax, so the rest of the row sums to "
        "less than one. Who should have shared the rest out?",
        softmax,
    )


def mask_added(exercise: Exercise, sentence: str = "") -> None:
    """Add a mistake: scores + mask, where True counts as 1."""

    def softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return torch.softmax(scores if mask is None else scores + mask, -1)

    with_softmax(
        exercise,
        "mask_added_to_scores",
        sentence
        or "The mask was added to the scores, where True counts as 1 and False as 0: a masked key "
        "lost one point and still weighs something. Which score weighs nothing?",
        softmax,
    )


def masked_with_zero(exercise: Exercise, sentence: str = "") -> None:
    """Add a mistake: a masked key gets the score 0."""
    with_softmax(
        exercise,
        "score_of_zero",
        sentence
        or "A masked key was given the score 0, which is a score like any other: exp(0) is 1. "
        "Which score has the exponential 0?",
        lambda scores, mask=None: torch.softmax(_hidden(scores, mask, 0.0), -1),
    )


def no_softmax(exercise: Exercise, sentence: str = "") -> None:
    """Add a mistake: scores in place of weights."""
    with_softmax(
        exercise,
        "scores_as_weights",
        sentence
        or "The scores averaged the values themselves: they never became weights, so a row of "
        "them may sum to anything.",
        lambda scores, mask=None: _hidden(scores, mask, 0.0),
    )


def _hidden(scores: Tensor, mask: Tensor | None, score: float) -> Tensor:
    return scores if mask is None else scores.masked_fill(~mask, score)


def _add(
    exercise: Exercise,
    name: str,
    sentence: str,
    call: Callable,
    raises: type[BaseException] | tuple[type[BaseException], ...] = (),
) -> None:
    """Add a mistake: `call`, which is given the reference, or the object's own method."""
    reference = exercise.reference
    if not isinstance(reference, type):
        answer = _named(name, sentence, lambda *inputs, **named: call(reference, *inputs, **named))
    else:
        right = getattr(reference, str(exercise.method))

        def method(self, *inputs: Any, **named: Any) -> Any:
            return call(types.MethodType(right, self), *inputs, **named)

        answer = type(name, (reference,), {"__doc__": sentence, str(exercise.method): method})
    exercise.mistake(answer, raises=raises)


def _named(name: str, sentence: str, function: Callable) -> Callable:
    function.__name__, function.__doc__ = name, sentence
    return function


def _knowing(function: Callable, softmax: Softmax) -> Callable:
    """Return a function of the course as it is where it, or what it calls, knows this softmax."""
    if function is attention.softmax:
        return softmax
    if not isinstance(function, types.FunctionType) or not _is_ours(function):
        return function
    known = function.__globals__
    used = {name: known[name] for name in function.__code__.co_names if name in known}
    changed = {
        name: new
        for name, value in used.items()
        if value is not function and (new := _knowing(value, softmax)) is not value
    }
    if not changed:
        return function
    copy = types.FunctionType(
        function.__code__,
        known | changed,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _is_ours(function: types.FunctionType) -> bool:
    return (function.__module__ or "").startswith("course_lib.")
