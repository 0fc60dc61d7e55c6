"""From an answer's replies to a verdict: what holds, what does not, and which mistake it is.

Behind a pass there may be a remark: on its form, or what would fail or be slow elsewhere.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.answers.answer import Answer, Description, Error, InProcess, tensors
from course_lib.answers.source import Source, forbidden_in
from course_lib.answers.watch import TooManyCalls, Watch, fresh_settings
from course_lib.checking.exercise import Case, Exercise
from course_lib.checking.explain.difference import kind
from course_lib.checking.explain.explanation import (
    explanation,
    forbidden,
    raised,
    sentence,
    unused,
)
from course_lib.checking.explain.known_mistakes import diagnosis
from course_lib.checking.forbidden import DOORS
from course_lib.checking.likeness import is_library
from course_lib.checking.looks import Status
from course_lib.checking.trial import (
    AnswerRun,
    Call,
    Question,
    Trial,
    cases,
    each,
    first_failing,
    max_points,
    one_of_each,
    request_for,
    smallest,
)
from course_lib.files.course_map import Outline

HELD = "Every case and every property holds."
HANDED_OUT = "This is the code as it was handed out: {} of {} cases fail. Mend the line at fault."
UNTOUCHED = "This is the code as it was handed out: find the line at fault, and mend it."
STUB = "Replace `raise NotImplementedError` by your own code."
TIMES = 10  # as many operations as the reference makes
FEWEST = 200  # operations of which nobody would speak
# what makes a tensor, on the CPU unless it is told another device
FACTORIES = tuple(
    f"torch.{name}"
    for name in (
        "tensor as_tensor from_numpy zeros ones full empty eye arange linspace logspace rand randn"
        " randint randperm tril_indices triu_indices scalar_tensor"
    ).split()
)


@dataclass(frozen=True)
class Failure:
    """The smallest case that failed. `expected` is None where a law needs no one right result."""

    sentence: str
    case: Case
    got: Any
    expected: Any
    error: Error | None


class Result(NamedTuple):
    """What came of one property. `held` is None where wrong results leave nothing to judge."""

    sentence: str
    points: int
    held: bool | None


@dataclass(frozen=True)
class Verdict:
    """What a check found. `properties` are in the order tried.

    `called` are the forbidden names that the answer was seen to call while it ran.
    """

    exercise: str
    status: Status
    points: int
    max_points: int
    message: str
    properties: tuple[Result, ...] = ()
    cases_held: int = 0
    cases: int = 0
    failure: Failure | None = None
    printed: str = ""
    called: tuple[str, ...] = ()


def unwritten(exercise: Exercise | Outline) -> str:
    """Say what there is to do where nothing has been done yet."""
    return UNTOUCHED if exercise.broken else STUB


def untried(exercise_id: str, points: int, status: Status, message: str) -> Verdict:
    """Return the verdict on an answer that was not tried, or whose trial does not count."""
    return Verdict(exercise_id, status, 0, points, message)


@fresh_settings()
def judge(exercise: Exercise, answer: Answer, seed: int = 0) -> Verdict:
    """Try an answer on every property of an exercise. Never raises for what the answer does."""
    description = answer.describe()
    points = max_points(exercise, seed)
    if refused := refusal(exercise, description):
        return untried(exercise.id, points, *refused)
    tried = AnswerRun(exercise, answer, seed)
    calls = [call for trial in tried.all() for call in trial.calls]
    if refused := refusal(exercise, description, calls):
        called = dict.fromkeys(name for call in calls for name in call.reply.forbidden)
        return replace(untried(exercise.id, points, *refused), called=tuple(called))
    return _conclusion(tried, description.source or Source(""), seed)


def refusal(
    exercise: Exercise, description: Description, calls: Sequence[Call] = ()
) -> tuple[Status, str] | None:
    """Say why an answer does not count, if it does not: by its source, or by its calls."""
    if message := _not_an_answer(exercise, description):
        return "error", message
    source = description.source or Source("")
    if source.is_stub(exercise.method):
        return "not attempted", STUB
    used = [name for call in calls for name in call.reply.forbidden]
    if not used:
        used = forbidden_in(source, description.aliases or {}, (*exercise.banned, *DOORS))
    # the solution may stand on helpers that no answer may call
    if used and not is_library(source, exercise.name, exercise.id):
        return "forbidden", forbidden(used[0])
    if calls and _unfinished(calls[0], exercise, description):
        return "not attempted", STUB
    return None


def _conclusion(tried: AnswerRun, source: Source, seed: int) -> Verdict:
    """Put what was tried into words."""
    exercise, trials = tried.exercise, tried.all()
    failure = None if all(trial.held for trial in trials) else _failure(trials)
    status, message = _status(tried, source, failure, seed)
    results = earned(tried)
    printed = (call.reply.printed for trial in trials for call in trial.calls)
    return Verdict(
        exercise=exercise.id,
        status=status,
        points=sum(x.points for x in results if x.held) * (status != "not attempted"),
        max_points=max_points(exercise, seed),
        message=message,
        properties=results,
        cases_held=sum(call.held for call in trials[0].calls),
        # who is right in all cases is asked at the edges as well
        cases=max(len(cases(exercise, seed)), len(trials[0].calls)),
        failure=failure,
        printed=next(filter(None, printed), ""),
    )


def _held(trial: Trial, trials: list[Trial]) -> bool | None:
    """Return True if a property holds, None where it fails for no reason of its own.

    Such a reason is a call that fails for a case whose plain result is right, or a law whose calls
    all came to an end.
    """
    first, *_ = trials
    if trial.held or trial is first or first.held:
        return bool(trial.held)
    right = {call.case.name for call in first.calls if call.held}
    judged = [call for call in trial.calls if call.expected is None or call.case.name in right]
    failing = [call for call in judged if not call.held]
    law = bool(trial.calls) and not any(call.expected for call in trial.calls)
    return False if (law and not failing) or (not law and failing) else None


def earned(tried: AnswerRun) -> tuple[Result, ...]:
    """List what came of each property; none counts for an answer that is no more than a guess."""
    trials, counts = tried.all(), tried.earns()
    return tuple(
        Result(x.sentence, x.points, _held(x, trials) if counts or not x.held else None)
        for x in trials
    )


def _status(
    tried: AnswerRun, source: Source, failure: Failure | None, seed: int
) -> tuple[Status, str]:
    """Say what was found: the known mistake that it is, or else what differs."""
    exercise = tried.exercise
    if failure is None:
        fault = inspect.getdoc(exercise.broken) if exercise.broken else None
        return "passed", f"{HELD} {' '.join(fault.split())}" if fault else HELD
    if exercise.broken and exercise.is_untouched(source):
        failing = sum(not call.held for call in tried.calls(0))
        return "not attempted", HANDED_OUT.format(failing, len(cases(exercise, seed)))
    if mistake := diagnosis(tried, seed):
        return "known mistake", mistake.sentence
    if failure.error:
        said = raised(tried, failure.error, seed)
    elif source.returns("NotImplementedError"):
        said = "This returns NotImplementedError, which stands in for your own code: replace it."
    else:
        said = explanation(tried, seed)
    never = unused(exercise, source, said)
    status = "error" if failure.error else "wrong"
    return status, f"{sentence(said)}{never}" if never else said


def _not_an_answer(exercise: Exercise, description: Description) -> str | None:
    """Say what was handed over instead of the function or class, if it was something else."""
    wanted = "class" if exercise.method else "function"
    if description.kind == wanted:
        return None
    if description.kind == "error":
        return sentence(f"This code cannot be executed: {description.problem}")
    name = exercise.name
    if description.kind == "function":
        return f"`{name}` is to be a class, and this is a function, or an object of that class."
    if description.kind == "class":
        return f"`{name}` is to be a function, and this is a class."
    return (
        f"check() got a value of type {description.kind}. Hand over the {wanted} itself, without "
        f'calling it: check("{exercise.id}", {name}).'
    )


def _unfinished(call: Call, exercise: Exercise, description: Description) -> bool:
    """Tell a stub by its exception, where its source is not to be had."""
    error = call.reply.error
    own = exercise.method or exercise.name
    return bool(
        error
        and description.source is None
        and error.type == "NotImplementedError"
        and error.function == own
    )


def _failure(trials: list[Trial]) -> Failure:
    """Pick the smallest failing call of the first property that fails."""
    broken, call = first_failing(trials).sentence, smallest(trials)
    if call is None:
        return Failure(broken, Case("", ()), None, None, None)
    return Failure(broken, call.case, call.reply, call.expected, call.reply.error)


@fresh_settings()
def remark(exercise: Exercise, answer: Answer, seed: int = 0) -> str | None:
    """Say in a sentence or two what a passed answer would not do elsewhere, if anything."""
    return (
        _moved(exercise, answer, seed)
        or _form(exercise, answer, seed)
        or _on_a_gpu(exercise, answer, seed)
        or _slow(exercise, answer, seed)
        or _unguarded(exercise, answer)
    )


def _moved(exercise: Exercise, answer: Answer, seed: int) -> str | None:
    """Find a result on another device than the inputs, which are on the CPU."""
    device = answer.run(cases(exercise, seed)[0].request).device
    if device == "cpu":
        return None
    return (
        f"One remark: the inputs are on the CPU, and your result is on the device {device!r}. "
        "Compute where the inputs are, as in `device=x.device`, and leave the choice to the caller."
    )


def _form(exercise: Exercise, answer: Answer, seed: int) -> str | None:
    """Find a result whose numbers are right, and that is of another type than it should be."""
    first = cases(exercise, seed)[0]
    got, right = answer.run(first.request).output, first.expected.output
    if wrong := next(_other_types(got, right), None):
        ours, theirs = map(_kind, wrong)
        if (ours, theirs) == ("a float", "an int"):
            theirs = "a whole number: one float in it, as `/` gives, makes all of it a float"
        return f"One remark: this returns {ours}, and should return {theirs}."
    if "default float type" not in (exercise.reference.__doc__ or ""):
        return None
    other = answer.run(replace(first.request, default_dtype="float64"))
    if all(x.dtype == torch.float64 for _, x in tensors(other.output)):
        return None
    return (
        "One remark: the result is float32 always. Who has set another default by "
        "`torch.set_default_dtype` expects that: leave out `dtype=torch.float32`."
    )


def _other_types(got: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of a result that are of another type than those of the right one."""
    if isinstance(got, Tensor) and isinstance(right, Tensor):
        if got.dtype != right.dtype:
            yield got, right
    elif type(got) is not type(right):
        yield got, right
    elif isinstance(got, tuple | list):
        for ours, theirs in zip(got, right, strict=False):
            yield from _other_types(ours, theirs)


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"numbers of {str(value.dtype).removeprefix('torch.')}"
    return kind(value)


def _on_a_gpu(exercise: Exercise, answer: Answer, seed: int) -> str | None:
    """Ask with inputs on torch's meta device, which has no numbers, as far as it can be asked.

    Its first use takes a second, so that only an answer which makes tensors is asked.
    """
    first = replace(cases(exercise, seed)[0].request, watch=FACTORIES)
    if not answer.run(first).forbidden:
        return None
    for question in one_of_each(cases(exercise, seed), type):
        if next(tensors(question.case.inputs), None) is None:
            return _on_its_own_device(exercise, answer, question)
        case = each(question.case, lambda x: x.to("meta"))
        request = request_for(exercise, case, seed)
        right, reply = InProcess(exercise.reference).run(request), answer.run(request)
        if right.error:
            return None
        if reply.error:
            # an operation that meta lacks says so of its backend
            message = reply.error.message
            fails = "device" in message and "backend" not in message
        else:
            # what is on the meta device comes back as no tensor
            fails = any(tensors(reply.output)) and not any(tensors(right.output))
        if fails:
            name = next(
                (p.name for p in exercise.parameters if hasattr(p.annotation, "dim_str")), "x"
            )
            return (
                "One remark: on a GPU this would fail. A tensor that you make yourself is on the "
                f"CPU unless you say `device={name}.device`."
            )
    return None


def _on_its_own_device(exercise: Exercise, answer: Answer, question: Question) -> str | None:
    """Ask for a result on torch's meta device, where a `device` is all that says where."""
    if "device" not in inspect.signature(exercise.reference).parameters:
        return None
    asked, named = question.request.inputs, question.request.keywords
    request = replace(question.request, inputs=(*asked, "meta"), keywords=(*named, "device"))
    # what is on the meta device comes back as no tensor
    if not any(tensors(answer.run(request).output)):
        return None
    return "One remark: whatever `device` is, the result is on the CPU."


def _unguarded(exercise: Exercise, answer: Answer) -> str | None:
    """Find that the lines of the stub which refuse bad arguments are gone."""
    if "raises " not in (exercise.reference.__doc__ or "").lower():  # its stub is made by parsing
        return None
    refuses, source = re.search(r"raise (\w+)\(", exercise.stub), answer.describe().source
    if refuses is None or source is None or re.search(r"\b(raise|assert)\b", source):
        return None
    return (
        f"One remark: the lines that you were given refuse bad arguments with a {refuses[1]}, and "
        "no line of yours does."
    )


def _slow(exercise: Exercise, answer: Answer, seed: int) -> str | None:
    """Count operations of torch, which are the same on every machine, where time is not."""
    for question in cases(exercise, seed):
        with Watch() as count:
            InProcess(exercise.reference).run(question.request)
        most = max(FEWEST, TIMES * count.made)
        error = answer.run(replace(question.request, max_calls=most)).error
        if count.made and error and error.type == TooManyCalls.__name__:
            return (
                f"One remark: it is slow for long inputs. One case takes over {most} operations of "
                f"torch, where {count.made} are enough. Which loop could be one operation on a "
                "whole tensor?"
            )
    return None
