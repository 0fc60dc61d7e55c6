"""From an answer's replies to a verdict: what holds, what does not, and which mistake it is."""

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from course_lib.answers.answer import Answer, Description, Error
from course_lib.answers.settings import fresh_settings
from course_lib.answers.source import Source
from course_lib.checking.exercise import Case, Exercise
from course_lib.checking.explain.explanation import explanation, raised, sentence, unused
from course_lib.checking.explain.known_mistakes import diagnosis
from course_lib.checking.likeness import is_library
from course_lib.checking.looks import Status
from course_lib.checking.ready_made import DOORS
from course_lib.checking.run.source_names import forbidden_in
from course_lib.checking.run.trial import (
    AnswerRun,
    Call,
    Trial,
    cases,
    first_failing,
    max_points,
    smallest,
)
from course_lib.files.course_map import Outline

# they subtract the peak and sum the exponentials, so that a softmax is one line more
PARTLY = ("logsumexp", "logaddexp")
HELD = "Every case and every property holds."
HANDED_OUT = "This is the code as it was handed out: {} of {} cases fail. Mend the line at fault."
UNTOUCHED = "This is the code as it was handed out: find the line at fault, and mend it."
# what a bound on memory refuses: see `answers.watch`
TOO_LARGE = re.compile(r"a tensor of ([\d x]+) numbers is larger than need be")
NO_EXIT = ("name 'exit' is not defined", "name 'quit' is not defined")
STUB = "Replace `raise NotImplementedError` by your own code."


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
        return "forbidden", _forbidden(used[0])
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
        said = raised(tried, _raised(failure.error, tried.exercise), seed)
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


def _forbidden(name: str) -> str:
    if name in DOORS:
        own = name.rpartition(".")[2]
        return f"This calls `{own}`, which has no place inside of an answer: build it yourself."
    if name.startswith("course_lib."):
        return f"This calls the library's own `{name}`: here you build it yourself."
    if name.rpartition(".")[2] in PARTLY:
        return f"This calls `{name}`, which does the larger part of what you are to build."
    return f"This calls `{name}`, the ready-made version of what you are to build."


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


def _raised(error: Error, exercise: Exercise) -> str:
    said = f"{error.message[:1].upper()}{error.message[1:]}"
    if error.type == "Timeout":
        return f"{said}: does a loop in your code never end?"
    if error.type == "Waited":
        return f"{said}: what does it wait for?"
    if error.type == "Misfit":
        return sentence(said)
    if error.type == "EOFError" and "reading a line" in error.message:
        return "This calls `input`, and nobody is there to type: take it as an argument."
    # in a notebook these two are the kernel's own, and no names of Python's
    if error.type == "SystemExit" or error.message in NO_EXIT:
        return "This ends the whole program: `return` the result, without `exit`."
    if error.type == "MemoryError" and (found := TOO_LARGE.match(error.message)):
        return (
            f"A tensor of {found[1]} numbers was made on the way, and none so large is needed: "
            "which product can be computed first, or which part at a time?"
        )
    # torch raises the same type for an operation that it does not have
    if error.type == "NotImplementedError" and not error.message:
        if error.function in (exercise.name, *exercise.methods):
            return "This still raises NotImplementedError: take that line out when you are done."
        return f"This calls `{error.function}`, which is not finished yet: complete that first."
    return f"{error.type}: {error.message}" if error.message else error.type


def _failure(trials: list[Trial]) -> Failure:
    """Pick the smallest failing call of the first property that fails."""
    broken, call = first_failing(trials).sentence, smallest(trials)
    if call is None:
        return Failure(broken, Case("", ()), None, None, None)
    expected = call.expected
    return Failure(
        sentence=broken,
        case=call.case,
        got=call.reply,
        expected=expected,
        error=call.reply.error,
    )
